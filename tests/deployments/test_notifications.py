"""Notifications of a real Prefect server to a webhook on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from storage.stages import ROOT
from tests.busy import ask_until_answered

if TYPE_CHECKING:
    from .conftest import Site

NOTIFY = "custom-webhook/told"


class Receiver(HTTPServer):
    """Stores the messages that it receives: {"subject", "body"}."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.told: list[dict[str, str]] = []

    def about(self, text: str) -> str:
        """Returns subject and body of the first message that contains a text; "" if there is none yet."""
        return next(("\n".join(one.values()) for one in self.told if text in "\n".join(one.values())), "")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Receiver)
        self.server.told.append(json.loads(text))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def automations(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deployments.automations", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=site.environment, capture_output=True, encoding="utf-8", timeout=180
    )


@pytest.fixture
def notified(server: Site, receiver: Receiver) -> Iterator[Receiver]:
    """A block that posts to the receiver, and the automations that send by it; removed afterwards."""
    kind = server.get("/block_types/slug/custom-webhook")["id"]
    schema = server.post("/block_schemas/filter", {"block_schemas": {"block_type_id": {"any_": [kind]}}})[0]
    data = {
        "name": "told",
        "url": f"http://127.0.0.1:{receiver.server_port}",
        "json_data": {"subject": "{{subject}}", "body": "{{body}}"},
    }
    content = {"name": "told", "data": data, "block_type_id": kind, "block_schema_id": schema["id"]}
    block = server.post("/block_documents/", content)["id"]
    made = automations(server, "--notify", NOTIFY)
    assert made.returncode == 0, made.stdout + made.stderr
    new = {"A run has failed", "A run is late", "A feed has fallen silent", "The gate has refused a model"}
    assert {line[9:] for line in made.stdout.splitlines() if line.startswith("created: ")} >= new
    yield receiver
    for automation in server.post("/automations/filter"):
        if automation["actions"][0]["type"] == "send-notification":
            server.delete(f"/automations/{automation['id']}")
    server.delete(f"/block_documents/{block}")


@pytest.mark.slow
def test_a_missing_notification_block_is_named(server: Site) -> None:
    done = automations(server, "--notify", "custom-webhook/nobody")
    assert done.returncode == 2 and "no block 'nobody' of the type 'custom-webhook'" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_failure_sends_a_notification(server: Site, notified: Receiver) -> None:
    flow = server.post("/flows/", {"name": "nightly"})["id"]

    def run(name: str, kind: str, state: str, tags: list[str], **more: Any) -> str:
        begun = {"type": kind, "name": state, "message": f"said of {name}", **more}
        made = server.post("/flow_runs/", {"flow_id": flow, "name": name, "tags": tags})["id"]
        server.post(f"/flow_runs/{made}/set_state", {"state": begun, "force": True})
        return made

    def event(name: str, resource: str, run: str, payload: dict[str, str]) -> None:
        related = {
            "prefect.flow-run." + run: "flow-run",
            "prefect.tag.guidespace": "tag",
            f"prefect.flow.{flow}": "flow",
        }
        told = {
            "id": str(uuid.uuid4()),
            "occurred": datetime.now(UTC).isoformat(),
            "event": name,
            "resource": {"prefect.resource.id": resource, "prefect.resource.name": "uk.xml.gz"},
            "related": [
                {"prefect.resource.id": key, "prefect.resource.role": role} for key, role in related.items()
            ],
            "payload": payload,
        }
        ask_until_answered(lambda: server.api.post("/events", json=[told])).raise_for_status()

    def told(text: str, again: Any) -> str:
        server.insist(again, lambda: bool(notified.about(text)))
        return notified.about(text)

    ours = ["guidespace"]
    failed = told("run that fails", lambda: run("run that fails", "FAILED", "Failed", ours))
    assert failed.startswith("GuideSpace: nightly has failed\n") and "said of run that fails" in failed
    assert f"{server.url}/runs/flow-run/" in failed
    crashed = told("run that dies", lambda: run("run that dies", "CRASHED", "Crashed", ours))
    assert crashed.startswith("GuideSpace: nightly has crashed\n")
    due = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    late = {"state_details": {"scheduled_time": due}}
    is_late = told("is late", lambda: run("slow", "SCHEDULED", "Late", ours, **late))
    assert "Check that a worker is running" in is_late
    night = run("a night", "COMPLETED", "Completed", ours)
    what = {"what": "not read: connection refused"}
    silent = told("uk.xml.gz", lambda: event("guidespace.feed.silent", "guidespace.feed.uk", night, what))
    assert "problem with a feed of a night" in silent and "uk.xml.gz: not read: connection" in silent
    why = {"version": "7", "reason": "worse than the champion"}
    refused = told("version 7", lambda: event("guidespace.model.refused", "guidespace.model.m", night, why))
    assert refused.startswith("GuideSpace: version 7 was not promoted\nworse than the champion\n")
    assert f"{server.url}/runs/flow-run/{night}" in refused
    run("a run of others", "FAILED", "Failed", ["other"])
    run("the last", "FAILED", "Failed", ours)
    told("the last", lambda: run("the last", "FAILED", "Failed", ours))
    assert not notified.about("a run of others")
