"""``guidespace serve`` as a process: another champion, many requests, and its page in a browser."""

import datetime
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.nights.serve import load, resident
from storage.tracking import Registry
from tests.flows.command import guidespace
from tests.flows.serve_process import AT, CLIENTS, NEW, STAND_IN, request_by_clients, serving

pytestmark = pytest.mark.slow
Server = tuple[str, subprocess.Popen[bytes], Path]  # address, process, log


@pytest.fixture
def server(served_home: Path, tmp_path: Path) -> Iterator[Server]:
    with serving(served_home, tmp_path / "serve.log") as running:
        yield running


def test_another_champion_serves_without_a_lost_request(
    server: Server, served_home: Path, served_titles: list[str]
) -> None:
    url, process, log = server
    registry, ended = Registry(served_home, code=STAND_IN), threading.Event()

    def move() -> None:
        try:
            registry.promote("2", "not worse", at=AT + datetime.timedelta(days=3))
            deadline = time.monotonic() + 90
            while httpx.get(f"{url}/health").json()["model"]["version"] != "2":
                assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
                time.sleep(0.2)
            time.sleep(0.5)
        finally:
            ended.set()

    mover = threading.Thread(target=move)
    mover.start()
    found = request_by_clients(url, served_titles, ended)
    mover.join()
    registry.promote("1", "back", at=AT + datetime.timedelta(days=4))
    assert {status for status, _ in found} == {200} and {version for _, version in found} == {"1", "2"}
    assert [version for _, version in found[-CLIENTS:]] == ["2"] * CLIENTS
    assert "guidespace_model_reloads 1.0" in httpx.get(f"{url}/metrics").text
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert log.read_text(encoding="utf-8").splitlines()[-1] == "GuideSpace: stopped"


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_any_loopback_address_serves(served_home: Path, tmp_path: Path, host: str) -> None:
    with serving(served_home, tmp_path / "serve.log", "--host", host) as (url, _, _):
        assert httpx.get(f"{url}/health").json()["status"] == "ok"
        assert httpx.get(f"{url}/health", headers={"Host": "elsewhere.example"}).status_code == 403


def test_two_thousand_requests_without_an_error_or_growth(server: Server, served_titles: list[str]) -> None:
    url, process, _ = server
    port = int(url.rpartition(":")[2])
    bodies = [
        json.dumps({"titles": [served_titles[place % len(served_titles)] if place % 5 else f"{NEW} {place}"]})
        for place in range(2000)
    ]
    assert load(port, "/similar", bodies[:400], CLIENTS).errors == 0
    before = resident(process.pid)
    found = load(port, "/similar", bodies, CLIENTS)
    assert found.errors == 0 and len(found.milliseconds) == 2000 and found.milliseconds.min() > 0
    assert resident(process.pid) < 1.1 * before
    taken = guidespace("serve", "--home", "nowhere", "--port", port)
    assert taken.returncode == 2 and f"cannot listen on 127.0.0.1, port {port}" in taken.stderr


def test_the_page_lists_paths_and_sends_requests(server: Server, launched: Any) -> None:
    page = launched.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server[0]}/docs")
    headings = page.locator("h2").all_inner_texts()
    assert headings[:5] == [
        *("POST /similar", "POST /vectors", "POST /categories", "GET /health", "GET /metrics"),
    ]
    assert {"GET /model", "GET /guide.xml", "GET /genres.xml"} <= {*headings[5:]}
    page.get_by_role("button", name="Send").first.click()
    answer = page.locator("pre", has_text="neighbours").first
    answer.wait_for()
    assert answer.inner_text().startswith("200\n{")
    assert all(url.startswith((server[0], "data:")) for url in asked)
    page.close()
