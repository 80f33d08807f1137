"""The beginning of what a guide says about a title, for the map's card.

A description belongs to its author, so that the map carries none unless ``publish.descriptions`` says so.
"""

import tempfile
from pathlib import Path

from storage.catalogue.titles import write_descriptions
from storage.formats.vocabulary import batches_of

CHARACTERS = 200


def read_beginnings(guide: Path, variants: Path, titles: int, folder: Path) -> list[str]:
    """The first 200 characters of each title's most aired description, cut between words; "" without one.

    Args:
        guide: Guide folder; one of before descriptions.parquet was published has none.
        variants: Parquet file of raw_title, title_id.
        titles: Number of titles.
        folder: For temporary files.
    """
    beginnings = [""] * titles
    if not (guide / "descriptions.parquet").exists():
        return beginnings
    with tempfile.TemporaryDirectory(dir=folder) as work:
        file = Path(work) / "descriptions.parquet"
        write_descriptions(guide, variants, file, CHARACTERS + 1)
        for batch in batches_of(file, ["title_id", "description"]):
            for title, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                beginnings[title] = beginnings[title] or _shorten(text)  # most airings first
    return beginnings


def _shorten(text: str) -> str:
    """At most 200 characters and "…" where more follow; whole words unless one alone is longer."""
    if len(text) <= CHARACTERS:
        return text
    words, _, _ = text[: CHARACTERS + 1].rpartition(" ")
    return (words or text[:CHARACTERS]).rstrip(".,;:–- ") + "…"
