"""Requests of pages of other sites are rejected by their headers Host and Origin."""

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from flows.same_site import SameSite


async def accept(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close()


APP = Starlette(routes=[Route("/", lambda _: PlainTextResponse("hello")), WebSocketRoute("/events", accept)])
CLIENT = TestClient(SameSite(APP, hosts=["TV.local"], origins=["http://localhost:5000"]))
OTHERS = [
    {"Host": "evil.example:4200"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "192.168.1.2:4200"},
    {"Host": "[::1"},
    {"Host": ""},
    {"Host": "localhost:4200", "Origin": "http://evil.example"},
    {"Host": "localhost:4200", "Origin": "http://localhost:9999"},
    {"Host": "localhost:4200", "Origin": "null"},
    {"Host": "evil.example", "Origin": "http://evil.example"},
]
OWN = [
    {"Host": "localhost:4200"},
    {"Host": "127.0.0.2"},
    {"Host": "[::1]:4200", "Origin": "http://[::1]:4200"},
    {"Host": "tv.local:4200", "Origin": "http://tv.local:4200"},
    {"Host": "localhost:4200", "Origin": "http://localhost:5000"},
]


@pytest.mark.parametrize("headers", OTHERS)
def test_other_sites_are_rejected(headers: dict[str, str]) -> None:
    assert CLIENT.get("/", headers=headers).status_code == 403
    with (
        pytest.raises(WebSocketDenialResponse) as denied,
        CLIENT.websocket_connect("/events", headers=headers),
    ):
        pass
    assert denied.value.status_code == 403


@pytest.mark.parametrize("headers", OWN)
def test_this_site_and_its_clients_are_accepted(headers: dict[str, str]) -> None:
    assert CLIENT.get("/", headers=headers).text == "hello"
    with CLIENT.websocket_connect("/events", headers=headers):
        pass


def test_any_host_may_be_accepted() -> None:
    client = TestClient(SameSite(APP, hosts=["*"]))
    assert client.get("/", headers={"Host": "tv.example"}).status_code == 200
    assert client.get("/", headers={"Host": "tv.example", "Origin": "http://a.example"}).status_code == 403
