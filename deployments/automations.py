"""Creates the automations of automations.yaml on a Prefect server, or updates those of the same names, where
``prefect automation create`` makes a second one: ``python -m deployments.automations``.
"""

import sys
from pathlib import Path

import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.settings import PREFECT_API_URL

FILE = Path(__file__).with_name("automations.yaml")


def declared() -> list[AutomationCore]:
    """What automations.yaml declares."""
    return list(map(AutomationCore.model_validate, yaml.safe_load(FILE.read_text("utf-8"))["automations"]))


def apply(client: SyncPrefectClient, automation: AutomationCore) -> str:
    """Leaves one automation of that name on the server, as given; returns what was done."""
    first, *others = client.read_automations_by_name(automation.name) or [None]
    if first is None:
        client.create_automation(automation)
        return f"created: {automation.name}"
    client.update_automation(first.id, automation)
    for other in filter(None, others):
        client.delete_automation(other.id)
    return f"updated: {automation.name}{f', {len(others)} of the same name deleted' if others else ''}"


def main() -> int:
    """Applies all of them to the server that PREFECT_API_URL names; returns the exit code."""
    if not PREFECT_API_URL.value():
        example = "that of your server, such as http://127.0.0.1:4200/api"
        print(f"PREFECT_API_URL names no server; set it to {example}", file=sys.stderr)
        return 2
    with get_client(sync_client=True) as client:
        for automation in declared():
            print(apply(client, automation))
    return 0


if __name__ == "__main__":
    sys.exit(main())
