"""Defines the command ``guidespace serve``. As in other commands, slow imports are inside the function."""

import os
import signal
import socket
import threading
from typing import Annotated

from typer import Option

from flows.cli.options import Home, Model
from flows.defaults import DEFAULT_HOME
from storage.addresses import is_loopback
from storage.errors import ExpectedError

TOKEN_VARIABLE = "GUIDESPACE_SERVE_TOKEN"  # environment variable
BACKLOG = 1024  # connections that wait to be accepted
HOST_HELP = f"address to listen on; {TOKEN_VARIABLE} must be set if other machines can reach it"
PORT_HELP = "port to listen on; 0: any free port"

Host = Annotated[str, Option(metavar="ADDRESS", help=HOST_HELP)]
Port = Annotated[int, Option(min=0, max=65535, help=PORT_HELP)]


class ServeError(ExpectedError, ValueError):
    """Error: the server cannot start. The message says why and what to do."""


def serve(
    home: Home = DEFAULT_HOME, host: Host = "127.0.0.1", port: Port = 8500, model: Model = None
) -> None:
    """Serve similar titles, vectors and categories over HTTP. A new champion is loaded automatically."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token and not is_loopback(host):
        raise ServeError(
            f"--host {host} is reachable from other machines; "
            f"set {TOKEN_VARIABLE} to a secret that clients must send"
        )
    listener = listen(host, port)
    import uvicorn
    from threadpoolctl import threadpool_limits

    from flows.serving.app import make_app
    from flows.serving.reloader import ModelReloader

    reloader = ModelReloader(home, model)
    config = uvicorn.Config(
        make_app(reloader, token, host),
        access_log=False,
        log_level="warning",
        server_header=False,
        lifespan="off",
    )
    threadpool_limits(1, user_api="blas")  # requests are computed by one thread
    threading.Thread(target=reloader.watch, name="watch", daemon=True).start()
    address = f"[{host}]" if ":" in host else host
    url = f"http://{address}:{listener.getsockname()[1]}"
    version = reloader.current.champion.version
    print(f"GuideSpace: serving {reloader.name} version {version} at {url} ({url}/docs)", flush=True)
    signal.set_wakeup_fd(-1)  # disables the thread of exits.py, so that uvicorn can finish requests
    try:
        uvicorn.Server(config).run([listener])
    except KeyboardInterrupt:  # uvicorn raises the signal again after its shutdown
        print("GuideSpace: stopped", flush=True)
    finally:
        reloader.stop()


def listen(host: str, port: int) -> socket.socket:
    """Opens a TCP socket that listens on a host and a port.

    Raises:
        ServeError: The address is in use, does not exist or is not permitted.
    """
    try:
        family, socket_type, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket_type, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        return listener
    except OSError as error:
        problem = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise ServeError(f"{problem}; choose another --host or --port (0: any free port)") from error
