"""Creates the automations of automations.yaml on a Prefect server, or updates those of the same names, where
``prefect automation create`` makes a second one: ``python -m deployments.automations``. With ``--notify
TYPE/NAME`` also those that send messages, by that notification block.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL

FILE = Path(__file__).with_name("automations.yaml")
OURS = '"prefect.tag.guidespace"'  # in the trigger of every automation of automations.yaml
NOTIFY = (
    "notification block that sends messages, such as slack-webhook/guidespace or custom-webhook/guidespace"
)


def declared() -> list[AutomationCore]:
    """What automations.yaml declares, without those that send messages."""
    return list(map(AutomationCore.model_validate, _read()["automations"]))


def notifications(client: SyncPrefectClient, block: str) -> list[AutomationCore]:
    """Those that send messages, by a block ``TYPE/NAME``.

    Raises:
        ValueError: The server has no such block.
    """
    kind, _, name = block.partition("/")
    try:
        found = client.read_block_document_by_name(name, kind, include_secrets=False)
    except ObjectNotFound as error:
        advice = "make it on Prefect's page Blocks, or name another one"
        raise ValueError(f"the server has no block {name!r} of the type {kind!r}; {advice}") from error
    made = []
    for one in _read()["notifications"]:
        message = {key: one.pop(key) for key in ("subject", "body")}
        action = {"type": "send-notification", "block_document_id": str(found.id), **message}
        made.append(AutomationCore.model_validate({**one, "enabled": True, "actions": [action]}))
    return made


def _read() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text("utf-8"))


def apply(client: SyncPrefectClient, automation: AutomationCore) -> str:
    """Leaves one automation of ours with that name on the server, as given; returns what was done.

    Automations of other projects with the same name stay: ours ask for the tag guidespace.
    """
    found = client.read_automations_by_name(automation.name)
    first, *others = [one for one in found if OURS in one.trigger.model_dump_json()] or [None]
    if first is None:
        client.create_automation(automation)
        return f"created: {automation.name}"
    client.update_automation(first.id, automation)
    for other in filter(None, others):
        client.delete_automation(other.id)
    return f"updated: {automation.name}{f', {len(others)} of the same name deleted' if others else ''}"


def main() -> int:
    """Applies all of them to the server that PREFECT_API_URL names; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deployments.automations", description=__doc__)
    parser.add_argument("--notify", metavar="TYPE/NAME", help=NOTIFY)
    block = parser.parse_args().notify
    if not PREFECT_API_URL.value():
        example = "that of your server, such as http://127.0.0.1:4200/api"
        print(f"PREFECT_API_URL names no server; set it to {example}", file=sys.stderr)
        return 2
    with get_client(sync_client=True) as client:
        try:
            wanted = [*declared(), *(notifications(client, block) if block else [])]
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        for automation in wanted:
            print(apply(client, automation))
    return 0


if __name__ == "__main__":
    sys.exit(main())
