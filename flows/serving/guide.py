"""Serves the merged guide of the home as ``/guide.xml``, ``/guide.xml.gz`` and ``/genres.xml``.

The file stays open during a response, so replacing the guide does not change the response. The ETag contains
the checksum, the compressed size and the uncompressed size of the file. ``/guide.xml`` is sent compressed to
clients that accept gzip, and decompressed block by block to other clients.
"""

import gzip
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import IO, Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from flows.serving.conditions import accepts_gzip, is_unmodified
from storage.home.merged_guide import GENRES_FILE, GUIDE_FILE, merged_file

BLOCK_BYTES = 1 << 18  # size of the blocks in which a file is sent
PATHS = ("/guide.xml", "/guide.xml.gz", "/genres.xml")
_MISSING = "the home has no merged guide yet; run `guidespace guide` or the flow refresh"


def add_guide_routes(
    app: FastAPI, home: Path, auth: dict[str, Any], check_token: Callable[[str], None]
) -> None:
    """Adds routes for PATHS and, for players that cannot send headers, for the paths /TOKEN/guide.xml etc.

    Args:
        app: The application.
        home: Folder of the home.
        auth: Keyword arguments of routes that require the token in a header.
        check_token: Function that raises HTTPException if the token in a path is wrong.
    """

    async def respond(request: Request) -> Response:
        """Returns the merged guide of all feeds (docs/serve.md); with ETag, Last-Modified and gzip."""
        return _make_response(request, home, request.url.path.rpartition("/")[2])

    async def respond_with_path_token(request: Request, token: str) -> Response:
        check_token(token)
        return await respond(request)

    options: dict[str, Any] = {"methods": ["GET", "HEAD"], "response_class": Response}
    for path in PATHS:
        app.add_api_route(path, respond, operation_id=path[1:], **options, **auth)
        app.add_api_route(f"/{{token}}{path}", respond_with_path_token, include_in_schema=False, **options)


def _make_response(request: Request, home: Path, name: str) -> Response:
    try:
        stored_name = GENRES_FILE if name == GENRES_FILE else GUIDE_FILE
        file = open(merged_file(home).with_name(stored_name), "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise HTTPException(503, _MISSING) from None
    stat = os.fstat(file.fileno())
    headers = {"Cache-Control": "private, no-cache", "Last-Modified": formatdate(stat.st_mtime, usegmt=True)}
    if name == GENRES_FILE:
        content = file.read()
        content_length, is_decompressed = len(content), False
        etag = f"{zlib.crc32(content):08x}-{content_length:x}"
        file.seek(0)
    else:
        etag, content_length = _read_gzip_trailer(file, stat.st_size)
        is_decompressed = name != GUIDE_FILE and not accepts_gzip(request.headers.get("Accept-Encoding", ""))
        if not is_decompressed:
            content_length = stat.st_size
    if name == "guide.xml":
        headers["Vary"] = "Accept-Encoding"
        if not is_decompressed:
            headers["Content-Encoding"], etag = "gzip", f"{etag}-gzip"
    headers["ETag"] = f'"{etag}"'
    if is_unmodified(request, headers["ETag"], stat.st_mtime):
        file.close()
        return Response(status_code=304, headers=headers)
    media_type = "application/gzip" if name == GUIDE_FILE else "application/xml"
    headers["Content-Length"] = str(content_length)
    if request.method == "HEAD":
        file.close()
        return Response(headers=headers, media_type=media_type)
    return StreamingResponse(_read_blocks(file, is_decompressed), headers=headers, media_type=media_type)


def _read_blocks(file: IO[bytes], is_decompressed: bool) -> Iterator[bytes]:
    with file, gzip.GzipFile(fileobj=file) if is_decompressed else file as reader:
        yield from iter(lambda: reader.read(BLOCK_BYTES), b"")


def _read_gzip_trailer(file: IO[bytes], size: int) -> tuple[str, int]:
    """Reads the last eight bytes of a gzip file with one member (compressed stream).

    Args:
        file: The gzip file.
        size: Size of the file in bytes.

    Returns:
        Text for an ETag (checksum, uncompressed and compressed size), and the uncompressed size in bytes.
    """
    checksum, uncompressed_size = struct.unpack("<II", os.pread(file.fileno(), 8, size - 8))
    return f"{checksum:08x}-{uncompressed_size:x}-{size:x}", uncompressed_size
