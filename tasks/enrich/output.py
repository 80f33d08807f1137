"""Writes enriched guides atomically, compressed according to the suffix of the file name."""

import bz2
import gzip
import lzma
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import IO

from storage.atomic import replaced_file
from tasks.enrich.enrich import GuideEnricher
from tasks.enrich.errors import EnrichError
from tasks.enrich.players.base import GENRES
from tasks.enrich.players.kodi import genres_xml
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import STANDARD_STREAM

GZIP_LEVEL = 6  # compression level 9 takes twice as long and saves one percent
COMPRESSORS: dict[str, Callable[[IO[bytes]], IO[bytes]]] = {  # by suffix of the file name
    ".gz": lambda file: gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0),  # type: ignore[dict-item,return-value]
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # type: ignore[dict-item,return-value]  # noqa: SIM115
}
_GUIDE_SUFFIXES = re.compile(r"(\.(xml|xmltv|gz|xz|bz2))+$", re.IGNORECASE)


def write_output(out: str, pieces: Iterable[bytes]) -> None:
    """Writes bytes to a file atomically, compressed according to its suffix; "-" means standard output.

    Raises:
        EnrichError: The folder of the file is missing or not writable.
    """
    check_output(out)
    if out == STANDARD_STREAM:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(out).expanduser()
    try:
        with replaced_file(path, keep_equal=True) as new_file, open(new_file, "wb") as file:
            with COMPRESSORS.get(path.suffix.lower(), nullcontext)(file) as compressed:
                compressed.writelines(pieces)
    except PermissionError as error:
        raise EnrichError(f"{path} cannot be written ({error.strerror}); name another file") from error


def write_guide(out: str, enricher: GuideEnricher) -> None:
    """Writes an enriched guide, and if Kodi is among the players, a table of genres in the same folder.

    Raises:
        EnrichError: The folder of the guide is missing or not writable.
    """
    write_output(out, enricher.pieces())
    if enricher.options.needs(GENRES):
        write_output(str(genres_file(out)), [genres_xml(enricher.report.categories)])


def genres_file(out: str) -> Path:
    """Returns the path of Kodi's table of genres for a guide, such as guide.genres.xml for guide.xml.gz."""
    path = Path(out).expanduser()
    return path.with_name(_GUIDE_SUFFIXES.sub("", path.name) + ".genres.xml")


def check_output(out: str, options: EnrichOptions | None = None) -> None:
    """Checks, before a guide is read, that the output path can be written.

    Raises:
        EnrichError: The path is a folder, its parent folder is missing, or the output is standard output
            although a table of genres must be written into its folder.
    """
    path = Path(out).expanduser()
    if out == STANDARD_STREAM and options and options.needs(GENRES):
        raise EnrichError(
            "for Kodi, a table of genres is written into the folder of OUT: name a file instead of -"
        )
    if out != STANDARD_STREAM and path.is_dir():
        raise EnrichError(f"{path} is a folder: name a file in this folder")
    if out != STANDARD_STREAM and not path.absolute().parent.is_dir():
        raise EnrichError(
            f"the folder {path.absolute().parent} does not exist: create it, or name another file"
        )
