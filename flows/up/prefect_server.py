"""Runs Prefect's server, protected from DNS rebinding and requests of other sites (flows/same_site.py).

    python -m flows.up.prefect_server --host HOST --port PORT --allowed-hosts NAME,NAME

Prefect can restrict CORS and require CSRF tokens, but it does not check the header ``Host``. The allowed
origins are those of its setting PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS.
"""

import argparse

import uvicorn
from prefect.server.api.server import create_app
from prefect.settings import get_current_settings

from flows.same_site import SameSite
from flows.up.network import PREFECT_PORT


def main() -> None:
    """Runs the server until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m flows.up.prefect_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="interface to listen on")
    parser.add_argument("--port", type=int, default=PREFECT_PORT, help="port to listen on")
    hosts_help = "host names by which clients may address the server, besides loopback; *: any name"
    parser.add_argument("--allowed-hosts", default="", metavar="NAME,NAME", help=hosts_help)
    options, server = parser.parse_args(), get_current_settings().server
    origins = server.api.cors_allowed_origins.split(",")
    uvicorn.run(
        SameSite(create_app(final=True), options.allowed_hosts.split(","), origins),
        host=options.host,
        port=options.port,
        timeout_keep_alive=server.api.keepalive_timeout,
        ws_ping_interval=server.api.websocket_ping_interval,
        ws_ping_timeout=server.api.websocket_ping_timeout,
        log_level=server.logging_level.lower(),
    )


if __name__ == "__main__":
    main()
