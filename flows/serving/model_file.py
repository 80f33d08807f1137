"""Serves the champion as a model file at ``/model``, and its SHA-256 at ``/model.sha256``.

The format of the file is in docs/model_file.md.
"""

import base64
import functools
import hashlib
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from flows.serving.conditions import etag_matches
from flows.serving.guide import BLOCK_BYTES
from storage.formats.model_file import MEDIA_TYPE, ModelIdentity, pack_model
from storage.tracking import Champion

if TYPE_CHECKING:
    from flows.serving.reloader import ModelReloader


class PackedModel:
    """Champion packed as a model file, in a temporary file that exists as long as this object.

    Attributes:
        name: File name for clients.
        size: Size of the file in bytes.
        digest: SHA-256 of the file.
    """

    def __init__(self, champion: Champion) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        identity = ModelIdentity(version=champion.version, digest=champion.digest)
        pack_model(champion.folder, identity, self._file)
        self.name, self.size = f"guidespace-model-{champion.version}.zip", self._file.tell()
        self._file.seek(0)
        self.digest = hashlib.file_digest(self._file, "sha256")  # pyright: ignore[reportArgumentType]

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers with the digest. They require clients to revalidate a cached copy before each use."""
        base64_digest = base64.b64encode(self.digest.digest()).decode()
        return {
            "ETag": f'"{self.digest.hexdigest()}"',
            "Repr-Digest": f"sha-256=:{base64_digest}:",  # RFC 9530
            "Cache-Control": "no-cache",
        }

    def blocks(self) -> Iterator[bytes]:
        """Yields the content of the model file in blocks. Several threads may call this at the same time."""
        for begin in range(0, self.size, BLOCK_BYTES):
            yield os.pread(self._file.fileno(), BLOCK_BYTES, begin)


pack_champion = functools.lru_cache(maxsize=1)(PackedModel)  # packing 22,000 titles takes 0.4 s


def add_model_file(app: FastAPI, reloader: "ModelReloader", auth: dict[str, Any]) -> None:
    """Adds the paths /model and /model.sha256 to the application.

    Args:
        app: The application.
        reloader: Holds the champion.
        auth: Keyword arguments of routes that require the token in a header.
    """

    @app.head("/model", include_in_schema=False, **auth)
    @app.get("/model", response_class=Response, responses={304: {"description": "not modified"}}, **auth)
    def model(request: Request) -> Response:
        """Returns the champion as a file for `--model`. The ETag is its SHA-256, for If-None-Match."""
        packed_model = pack_champion(reloader.current.champion)
        if etag_matches(request.headers.get("If-None-Match", ""), packed_model.headers["ETag"]):
            return Response(status_code=304, headers=packed_model.headers)
        attachment = f'attachment; filename="{packed_model.name}"'
        headers = {
            **packed_model.headers,
            "Content-Length": str(packed_model.size),
            "Content-Disposition": attachment,
        }
        if request.method == "HEAD":
            return Response(headers=headers, media_type=MEDIA_TYPE)
        return StreamingResponse(packed_model.blocks(), headers=headers, media_type=MEDIA_TYPE)

    @app.head("/model.sha256", include_in_schema=False, **auth)
    @app.get("/model.sha256", response_class=PlainTextResponse, **auth)
    def model_digest() -> str:
        """Returns the SHA-256 of /model, as a line that `sha256sum --check` reads."""
        packed_model = pack_champion(reloader.current.champion)
        return f"{packed_model.digest.hexdigest()}  {packed_model.name}\n"
