"""Ports of loopback for servers that tests start."""

import socket


def free_port() -> int:
    """Returns a port on which no process listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
