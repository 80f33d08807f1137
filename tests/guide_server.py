"""HTTP server on loopback whose content requires certain headers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Answers with ``content``, with 403 if a request lacks one of the headers ``wanted``, or sends it to
    ``elsewhere``.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wanted: dict[str, str] = {}
        self.elsewhere = ""
        self.etag = ""  # if set, a conditional request for it gets 304
        self.content = b""
        self.requests: list[dict[str, str]] = []  # their headers, names in lower case

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/guide.xml"


class Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self.server.requests.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
            return
        if self.server.etag and self.headers["If-None-Match"] == self.server.etag:
            self.send_response(304)
            self.end_headers()
            return
        is_known = all(self.headers[name] == value for name, value in self.server.wanted.items())
        self.send_response(200 if is_known else 403)
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        self.end_headers()
        self.wfile.write(self.server.content if is_known else b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve_guide(content: bytes) -> Iterator[Server]:
    """Runs a server in a thread until the block ends."""
    server = Server()
    server.content = content
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
