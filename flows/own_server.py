"""Prefect's temporary server in a session of its own: the terminal's Ctrl-C does not reach it, and it ends with its client.

``SubprocessASGIServer`` starts it in the terminal's process group. There Ctrl-C ends it together with the run, whose client then
waits 75 s for an answer, and a run ended by SIGKILL leaves it behind. Here it reads a pipe that nobody writes to, which
the kernel closes when the client's process is gone, however it ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from prefect.server.api.server import SubprocessASGIServer
from prefect.settings import get_current_settings


class OwnServer(SubprocessASGIServer):
    """What Prefect's client finds as the temporary server of this process once it was made."""

    def _run_uvicorn_command(self) -> subprocess.Popen[bytes]:
        environment = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(self.port)],
            env={**os.environ, **environment, **get_current_settings().to_environment_variables(exclude_unset=True)},
            stdin=subprocess.PIPE,
            start_new_session=True,
        )


def serve(port: int) -> None:
    """Runs the server until the client's process is gone or SIGTERM comes."""
    import uvicorn

    threading.Thread(target=_end_with_the_client, name="client", daemon=True).start()
    uvicorn.run("prefect.server.api.server:create_app", factory=True, host="127.0.0.1", port=port, log_level="error", lifespan="on")


def _end_with_the_client() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
