"""Creates the automations of automations.yaml on a Prefect server, or brings those of the same names up to date.

``prefect automation create`` makes a second one each time it is called. From the root of the checkout:

    python -m deployments.automations
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.settings import PREFECT_API_URL

FILE = Path(__file__).with_name("automations.yaml")


def declared() -> list[AutomationCore]:
    """What automations.yaml declares."""
    return [AutomationCore.model_validate(each) for each in yaml.safe_load(FILE.read_text(encoding="utf-8"))["automations"]]


def apply(client: SyncPrefectClient, automation: AutomationCore) -> str:
    """One automation of that name on the server, as given; says what was done."""
    first, *others = client.read_automations_by_name(automation.name) or [None]
    if first is None:
        client.create_automation(automation)
        return f"created: {automation.name}"
    client.update_automation(first.id, automation)
    for other in others:
        if other is not None:
            client.delete_automation(other.id)
    return f"updated: {automation.name}{f', {len(others)} of the same name deleted' if others else ''}"


def main() -> int:
    """Applies all of them to the server that PREFECT_API_URL names."""
    if not PREFECT_API_URL.value():
        print("PREFECT_API_URL names no server; set it to that of your server, such as http://127.0.0.1:4200/api", file=sys.stderr)
        return 2
    with get_client(sync_client=True) as client:
        for automation in declared():
            print(apply(client, automation))
    return 0


if __name__ == "__main__":
    sys.exit(main())
