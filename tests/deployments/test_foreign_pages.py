"""A page of another site, open in the operator's browser, cannot use Prefect's server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import websockets
import yaml

from storage.stages import ROOT

if TYPE_CHECKING:
    from .conftest import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EVIL = "http://evil.example"
POOL = {"name": "evil", "type": "process", "base_job_template": {}}


def test_requests_with_a_foreign_origin_or_host_do_nothing(server: Site) -> None:
    host = server.url.removeprefix("http://")
    with httpx.Client(base_url=f"{server.url}/api", timeout=30) as page:
        asks = {"Origin": EVIL, "Access-Control-Request-Method": "POST"}
        asks["Access-Control-Request-Headers"] = "content-type,prefect-csrf-token"
        preflight = page.options("/work_pools/", headers=asks)
        assert preflight.status_code == 403 and "access-control-allow-origin" not in preflight.headers
        for headers in ({"Origin": EVIL}, {"Origin": "null"}, {"Host": "evil.example"}):
            assert page.post("/work_pools/", json=POOL, headers=headers).status_code == 403
            assert page.get("/admin/settings", headers=headers).status_code == 403
            assert page.get("/csrf-token", params={"client": "evil"}, headers=headers).status_code == 403
        rebinding = {"Host": "evil.example", "Origin": "http://evil.example"}
        assert page.get("/health", headers=rebinding).status_code == 403
        without_token = page.post("/work_pools/", json=POOL)
        assert (without_token.status_code, without_token.json()["detail"]) == (403, "Missing CSRF token.")
    assert server.api.get("/work_pools/evil").status_code == 404

    async def listen(origin: str) -> None:
        async with websockets.connect(
            f"ws://{host}/api/events/out",
            origin=websockets.Origin(origin),
            subprotocols=[websockets.Subprotocol("prefect")],
        ):
            pass

    with pytest.raises(websockets.InvalidStatus) as rejected:
        asyncio.run(listen(EVIL))
    assert rejected.value.response.status_code == 403
    asyncio.run(listen(server.url))


def test_pages_and_clients_of_this_machine_are_served(server: Site) -> None:
    allowed = {"Origin": server.url, "Access-Control-Request-Method": "POST"}
    answer = httpx.options(f"{server.url}/api/work_pools/", headers=allowed)
    assert answer.headers["access-control-allow-origin"] == server.url
    assert httpx.get(server.url, headers={"Host": "localhost"}, follow_redirects=True).is_success
    assert server.post("/work_pools/filter") is not None  # with a CSRF token


def test_compose_has_the_settings_of_up() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    prefect = services["prefect"]
    assert prefect["command"][:3] == ["python", "-m", "flows.up.prefect_server"]
    assert "--allowed-hosts=prefect" in prefect["command"]
    assert prefect["environment"]["PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED"] == "true"
    assert "*" not in prefect["environment"]["PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS"]


def test_automations_of_other_projects_with_our_names_stay(server: Site) -> None:
    name, trigger = "Silent runs have crashed", {"type": "event", "posture": "Reactive", "expect": ["theirs"]}
    content = {"name": name, "trigger": trigger, "actions": [{"type": "do-nothing"}]}
    theirs = server.post("/automations/", content)

    def named() -> list[dict[str, Any]]:
        return [each for each in server.post("/automations/filter") if each["name"] == name]

    try:
        before = named()
        for _ in range(2):
            command = [sys.executable, "-m", "deployments.automations"]
            subprocess.run(command, cwd=ROOT, env=server.environment, check=True, timeout=180)
        kept = [each for each in named() if each["id"] == theirs["id"]]
        assert [each["trigger"] for each in kept] == [theirs["trigger"]]
        assert len(named()) == max(2, len(before))  # theirs and one of ours
    finally:
        server.delete(f"/automations/{theirs['id']}")
