"""S3 server on loopback, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec  # noqa: F401  (its registry is emptied below)
import httpx
import pytest

MISSING = "is not installed: pip install 'moto[s3]' s3fs"


@contextmanager
def bucket(name: str) -> Iterator[Any]:
    """The file system (s3fs) of a server with one empty bucket; AWS_… variables lead to it."""
    server_module = pytest.importorskip("moto.server", reason=f"moto {MISSING}")
    s3fs = pytest.importorskip("s3fs", reason=f"s3fs {MISSING}")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in variables.items():
            patch.setenv(variable, value)
        s3fs.S3FileSystem.clear_instance_cache()
        try:
            system = s3fs.S3FileSystem()
            system.mkdir(name)
            yield system
        finally:
            httpx.post(f"http://{host}:{port}/moto-api/reset")  # its buckets outlive it
            server.stop()
            s3fs.S3FileSystem.clear_instance_cache()
