"""Reads excerpts of programme descriptions, which the map shows on the card of a title.

Descriptions are protected by copyright, so the map contains excerpts only if ``publish.descriptions`` is set.
"""

import tempfile
from pathlib import Path

from storage.catalogue.connection import temporary_database
from storage.catalogue.titles import write_descriptions
from storage.formats.vocabulary import batches_of

MAX_CHARACTERS = 200  # maximum length of an excerpt


def read_excerpts(guide: Path, variants: Path, title_count: int, folder: Path) -> list[str]:
    """Returns the beginning of the most frequently aired description of each title; "" without a description.

    Args:
        guide: Guide folder. If it does not contain descriptions.parquet, all excerpts are "".
        variants: Parquet file that maps raw_title to title_id.
        title_count: Number of titles.
        folder: Folder for temporary files.
    """
    excerpts = [""] * title_count
    if not (guide / "descriptions.parquet").exists():
        return excerpts
    with tempfile.TemporaryDirectory(dir=folder) as work, temporary_database(Path(work)) as connection:
        file = Path(work) / "descriptions.parquet"
        write_descriptions(connection, guide, variants, file, MAX_CHARACTERS + 1)
        for batch in batches_of(file, ["title_id", "description"]):
            for title, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                # The descriptions of a title are sorted by their number of airings, the largest first.
                excerpts[title] = excerpts[title] or _shorten(text)
    return excerpts


def _shorten(text: str) -> str:
    """Shortens a long text between two words, to at most MAX_CHARACTERS and a final "…"."""
    if len(text) <= MAX_CHARACTERS:
        return text
    words, _, _ = text[: MAX_CHARACTERS + 1].rpartition(" ")
    return (words or text[:MAX_CHARACTERS]).rstrip(".,;:–- ") + "…"
