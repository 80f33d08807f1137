"""The command ``guidespace serve``; imports stand inside, as in commands.py."""

import os
import signal
import socket
import threading
from typing import Annotated

from typer import Option

from flows.cli.commands import HOME, Home, Model, app
from storage.addresses import is_loopback
from storage.errors import ExpectedError

TOKEN = "GUIDESPACE_SERVE_TOKEN"
WAITING = 1024  # connections that wait to be accepted
HOST = f"address to listen on; other than this machine's own it needs a token in {TOKEN}"
PORT = "port to listen on; 0 takes a free one"

Host = Annotated[str, Option(metavar="ADDRESS", help=HOST)]
Port = Annotated[int, Option(min=0, max=65535, help=PORT)]


class ServeError(ExpectedError, ValueError):
    """It cannot serve as it was told; the message says why and what to do."""


@app.command()
def serve(home: Home = HOME, host: Host = "127.0.0.1", port: Port = 8500, model: Model = None) -> None:
    """Answer over HTTP what titles are like and what they are. The model that serves is reloaded."""
    token = os.environ.get(TOKEN, "")
    if not token and not is_loopback(host):
        raise ServeError(
            f"--host {host} is open to other machines; set {TOKEN} to a secret that clients send"
        )
    listening = listen(host, port)
    import torch
    import uvicorn
    from threadpoolctl import threadpool_limits

    from flows.champion import reading_home
    from flows.serving.app import make_app
    from flows.serving.space import Served

    served = Served(reading_home(home, model), model)
    config = uvicorn.Config(
        make_app(served, token, host),
        access_log=False,
        log_level="warning",
        server_header=False,
        lifespan="off",
    )
    torch.set_num_threads(1)  # also of threads that begin later
    threadpool_limits(1, user_api="blas")  # requests are computed by one thread
    threading.Thread(target=served.watch, name="watch", daemon=True).start()
    address = f"[{host}]" if ":" in host else host
    where = f"http://{address}:{listening.getsockname()[1]}"
    version = served.space.champion.version
    print(f"GuideSpace: {served.name} version {version} serves at {where} ({where}/docs)", flush=True)
    signal.set_wakeup_fd(-1)  # uvicorn answers what has begun, and then ends
    try:
        uvicorn.Server(config).run([listening])
    except KeyboardInterrupt:  # as uvicorn repeats the signal that ended it
        print("GuideSpace: serves no longer", flush=True)
    finally:
        served.end()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; ServeError where the address cannot be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(WAITING)
        return listening
    except OSError as error:
        why = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise ServeError(f"{why}; name another by --host and --port (0: any free one)") from error
