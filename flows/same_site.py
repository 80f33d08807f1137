"""Rejects HTTP requests that a web page of another site may have sent (ASGI middleware).

The middleware checks two headers, which a page cannot change. ``Host`` is the name by which the browser
reached the server. If it is a foreign name, this is DNS rebinding: a page has made its host name resolve to
this machine. ``Origin`` is the site of the page; browsers send it with every POST request, cross-origin
request and WebSocket handshake. Other clients do not send ``Origin``.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from storage.addresses import is_loopback_address


class SameSite:
    """ASGI middleware that accepts a request if its headers Host and Origin are allowed.

    Host must be one of ``hosts`` or loopback. Origin must be absent, this site, or one of ``origins``.

    Args:
        app: The application.
        hosts: Host names without ports; ``"*"`` accepts any, for servers that ask for a password.
        origins: Origins of other sites that may send requests, such as ``http://localhost:5000``.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)
        self.origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards a request or WebSocket handshake to the application, or answers 403 if it is rejected."""
        problem = (
            self._rejection_reason(Headers(scope=scope)) if scope["type"] in ("http", "websocket") else ""
        )
        if problem:
            await JSONResponse({"reason": problem, "detail": problem}, 403)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _rejection_reason(self, headers: Headers) -> str:
        """Returns the reason why a request is rejected, or '' if it is accepted."""
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if not (self.hosts & {name, "*"} or is_loopback_address(name)):
            return f"the header Host names {host!r}; expected the address that this server was started with"
        if origin is not None and origin not in self.origins and origin.partition("://")[2] != host:
            return f"the header Origin names {origin!r}, a page of another site"
        return ""
