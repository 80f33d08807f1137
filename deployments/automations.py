"""Creates or updates the automations of automations.yaml on a Prefect server.

    python -m deployments.automations [--notify TYPE/NAME]

With ``--notify``, also creates the automations that send messages by the notification block ``TYPE/NAME``.
``prefect automation create`` would create duplicates instead of updating existing automations.
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
TAG_RESOURCE = '"prefect.tag.guidespace"'  # part of the trigger of each automation of automations.yaml
NOTIFY_HELP = "notification block that sends messages, such as slack-webhook/guidespace"


def read_automations() -> list[AutomationCore]:
    """Reads the automations of automations.yaml that do not send messages."""
    return list(map(AutomationCore.model_validate, _read_file()["automations"]))


def read_notifications(client: SyncPrefectClient, block: str) -> list[AutomationCore]:
    """Reads the automations of automations.yaml that send messages by the notification block ``TYPE/NAME``.

    Raises:
        ValueError: The server does not have the block.
    """
    block_type, _, name = block.partition("/")
    try:
        document = client.read_block_document_by_name(name, block_type, include_secrets=False)
    except ObjectNotFound as error:
        advice = "create it on Prefect's page Blocks, or name another block"
        raise ValueError(f"the server has no block {name!r} of the type {block_type!r}; {advice}") from error
    automations = []
    for declaration in _read_file()["notifications"]:
        message = {key: declaration.pop(key) for key in ("subject", "body")}
        action = {"type": "send-notification", "block_document_id": str(document.id), **message}
        automations.append(
            AutomationCore.model_validate({**declaration, "enabled": True, "actions": [action]})
        )
    return automations


def _read_file() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text("utf-8"))


def apply_automation(client: SyncPrefectClient, automation: AutomationCore) -> str:
    """Creates or updates an automation on a server, deletes its duplicates, and returns a message.

    Automations of other projects with the same name are not changed: their triggers lack TAG_RESOURCE.
    """
    automations_of_name = client.read_automations_by_name(automation.name)
    existing_automations = [
        candidate for candidate in automations_of_name if TAG_RESOURCE in candidate.trigger.model_dump_json()
    ]
    if not existing_automations:
        client.create_automation(automation)
        return f"created: {automation.name}"
    first, *duplicates = existing_automations
    client.update_automation(first.id, automation)
    for duplicate in duplicates:
        client.delete_automation(duplicate.id)
    return f"updated: {automation.name}{f', deleted {len(duplicates)} duplicates' if duplicates else ''}"


def main() -> int:
    """Creates or updates the automations on the server of PREFECT_API_URL; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deployments.automations", description=__doc__)
    parser.add_argument("--notify", metavar="TYPE/NAME", help=NOTIFY_HELP)
    block = parser.parse_args().notify
    if not PREFECT_API_URL.value():
        print("PREFECT_API_URL is not set; set it, for example to http://127.0.0.1:4200/api", file=sys.stderr)
        return 2
    with get_client(sync_client=True) as client:
        try:
            automations = [*read_automations(), *(read_notifications(client, block) if block else [])]
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        for automation in automations:
            print(apply_automation(client, automation))
    return 0


if __name__ == "__main__":
    sys.exit(main())
