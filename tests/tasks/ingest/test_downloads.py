"""Downloads from servers on loopback that are slow, hang, ask to wait, or answer 304."""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from guides import guide, local_settings, read, rows

from tasks.ingest.sources.download import MAX_WAIT_SECONDS, Validators, download
from tasks.ingest.sources.feeds import FeedError, FeedUnreachable

Serve = Callable[[Callable[[socket.socket, bytes, int], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves http with a function of connection, request and its number; yields a function that
    returns the URL.
    """
    listening: list[socket.socket] = []
    stopping = threading.Event()

    def start(answer: Callable[[socket.socket, bytes, int], None]) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        listening.append(server)

        def accept() -> None:
            number = 0
            while not stopping.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                number += 1
                threading.Thread(target=handle, args=(connection, number), daemon=True).start()

        def handle(connection: socket.socket, number: int) -> None:
            with connection:
                with contextlib.suppress(OSError):  # the client has gone
                    answer(connection, connection.recv(65536), number)

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/g.xml?access_token=k111"

    yield start
    stopping.set()
    for server in listening:
        server.close()


def head(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "Connection: close", "", ""]).encode()


def drip(connection: socket.socket, length: int, sent: list[int]) -> None:
    """Sends single bytes until the client disconnects; appends a number to ``sent`` for each."""
    for number in range(length):
        connection.sendall(b"x")
        sent.append(number)
        time.sleep(0.05)


@pytest.mark.slow
def test_a_slow_body_is_cancelled(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.ingest.sources.download.RATE_SECONDS", 0.5)
    sent: list[int] = []

    def answer(connection: socket.socket, request: bytes, number: int) -> None:
        connection.sendall(head("200 OK"))
        drip(connection, 10_000, sent)

    limits = local_settings(download_bytes_per_second=1000)
    result = download(serve(answer), tmp_path / "f", limits, pause=lambda _: None)
    assert (
        "bytes/s, less than 1,000 (ingest.download_bytes_per_second), 4 times" in result.problem
        and result.unreachable
    )
    assert 0 < len(sent) < 10_000  # given up before the end of the first answer
    slow_enough = local_settings(download_bytes_per_second=1, download_seconds=2.0)
    result = download(serve(answer), tmp_path / "f", slow_enough)
    assert "within 2 seconds (ingest.download_seconds)" in result.problem and result.unreachable


@pytest.mark.parametrize("silent", [False, True])
def test_slow_or_missing_headers_end_at_the_deadline(tmp_path: Path, serve: Serve, silent: bool) -> None:
    sent: list[int] = []
    over = threading.Event()

    def answer(connection: socket.socket, request: bytes, number: int) -> None:
        if silent:
            over.wait()
        connection.sendall(head("200 OK").removesuffix(b"\r\n") + b"X-Long: ")
        drip(connection, 10_000, sent)

    with pytest.raises(
        FeedUnreachable, match=r"g.xml: not fetched within 1 seconds \(ingest.download_seconds\)"
    ):
        read(tmp_path, serve(answer), download_seconds=1.0)
    over.set()
    assert silent or 0 < len(sent) < 10_000
    assert rows(tmp_path, "SELECT count(*) FROM feeds") == [(0,)]


def test_retry_after_is_respected(tmp_path: Path, serve: Serve) -> None:
    content = guide(programmes=3)

    def answer(connection: socket.socket, request: bytes, number: int) -> None:
        waits = [
            "Retry-After: 7",
            "Date: Sat, 01 Mar 2025 00:00:00 GMT\r\nRetry-After: Sat, 01 Mar 2025 00:01:40 GMT",
            "Retry-After: soon",
        ]
        connection.sendall(head("503 Busy", waits[number - 1]) if number <= 3 else head("200 OK") + content)

    pauses: list[float] = []
    assert (
        download(
            serve(answer), tmp_path / "f", local_settings(size_cap_bytes=1 << 20), pause=pauses.append
        ).problem
        == ""
    )
    assert pauses[:2] == [7.0, 100.0] and 2.0 <= pauses[2] <= 6.0 and (tmp_path / "f").read_bytes() == content


@pytest.mark.parametrize(
    ("wait", "expected"), [(3600, "; Retry-After is 3,600 seconds (limit: 300)"), (60, "429 Too Many")]
)
def test_a_long_retry_after_fails_the_download(
    tmp_path: Path, serve: Serve, wait: int, expected: str
) -> None:
    requests: list[int] = []

    def answer(connection: socket.socket, request: bytes, number: int) -> None:
        requests.append(number)
        connection.sendall(head("429 Too Many Requests", f"Retry-After: {wait}"))

    pauses: list[float] = []
    problem = download(
        serve(answer), tmp_path / "f", local_settings(download_seconds=30), pause=pauses.append
    ).problem
    assert expected in problem and pauses == [] and requests == [1] and MAX_WAIT_SECONDS == 300


def test_not_modified_to_an_unconditional_request_is_an_error(tmp_path: Path, serve: Serve) -> None:
    url = serve(lambda connection, request, number: connection.sendall(head("304 Not Modified")))
    with pytest.raises(
        FeedError, match=r"g.xml: the server answered 304 Not Modified to an unconditional request"
    ):
        read(tmp_path, url)
    assert rows(tmp_path, "SELECT count(*) FROM feeds") == [(0,)]
    validators = Validators(etag='"v1"')
    assert download(url, tmp_path / "f", local_settings(size_cap_bytes=10), validators).unchanged


def test_logs_and_messages_contain_no_secret(
    tmp_path: Path, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    content = guide(programmes=3)
    url = serve(lambda connection, request, number: connection.sendall(head("200 OK") + content))
    with caplog.at_level(logging.DEBUG):
        read(tmp_path, url.replace("http://", "http://ann:k222@"))
        refused = "http://ann:k222@127.0.0.1:1/?key=k111"
        message = download(
            refused, tmp_path / "f", local_settings(size_cap_bytes=10), pause=lambda _: None
        ).problem
    assert (
        "k111" not in caplog.text
        and "k222" not in caplog.text
        and "k222" not in message
        and "k111" not in message
    )
