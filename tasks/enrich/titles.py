"""Groups the programmes of a guide by title, and reads the contexts and descriptions of titles.

Shows, airings and descriptions are computed by the same queries as in the nightly run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from storage.catalogue.connection import Connection, escape_glob, temporary_database
from storage.catalogue.titles import write_descriptions
from storage.formats import vocabulary as pieces
from tasks.preprocess.sentences import TitleTexts
from tasks.sentences.encoder import DESCRIPTION_CHARACTERS
from tasks.text.words import CONTEXT_KINDS
from tasks.tokenize.contexts import write_contexts
from tasks.tokenize.pieces import parse_piece
from tasks.tokenize.shows import write_raw_titles, write_shows

MEMORY_BYTES = 100_000_000  # memory limit of DuckDB; a guide of any size is enriched in less than 500 MB
PIECE_ROWS = 20_000  # raw titles parsed at once
BATCH_ROWS = 8192  # programmes read at once


@dataclass(frozen=True)
class GuideTitles:
    """Titles of a guide, sorted by show key (normalized title). Lists and arrays have one entry per title."""

    folder: Path  # folder with the tables of the guide (survey.py)
    titles: list[str]  # display titles
    raw_titles: list[str]  # titles as in the guide
    show_keys: list[str]
    languages: list[str]  # language codes; "" if unknown
    is_placeholder: np.ndarray  # bool, whether the title names no programme ("To be announced")
    title_of_raw: dict[str, int]  # index of the title by raw title
    category_lists: dict[int, tuple[str, ...]]  # most frequent list of categories, by index of the title
    has_gap: np.ndarray  # bool, whether categories can be inserted into a programme that lacks them

    def contexts(self, title_ids: np.ndarray) -> list[list[str]]:
        """Returns the tokens of the airing context (channel, hour, …) of titles with the given indices."""
        if not len(title_ids):
            return []
        variants, file = self.folder / "variants.parquet", self.folder / "contexts.parquet"
        with temporary_database(self.folder, MEMORY_BYTES) as connection:
            write_contexts(connection, guide=self.folder, variants=variants, kinds=CONTEXT_KINDS, path=file)
        table = pq.read_table(file, columns=["title_id", "token"])
        positions = self._positions(title_ids)[table["title_id"].to_numpy()]
        rows = np.flatnonzero(positions >= 0)
        title_tokens: list[list[str]] = [[] for _ in title_ids]
        tokens = table["token"].take(rows).to_pylist()
        for position, token in zip(positions[rows].tolist(), tokens, strict=True):
            title_tokens[position].append(token)
        return title_tokens

    def _positions(self, title_ids: np.ndarray) -> np.ndarray:
        """Returns, for each title of the guide, its position in ``title_ids``; -1 if it is not among them."""
        positions = np.full(len(self.titles), -1)
        positions[title_ids] = np.arange(len(title_ids))
        return positions

    def descriptions(self, title_ids: np.ndarray, max_texts: int) -> tuple[np.ndarray, list[str]]:
        """Reads texts of titles: their descriptions and, for titles with few descriptions, their sub-titles.

        Args:
            title_ids: Indices of titles.
            max_texts: Maximum number of texts (descriptions and sub-titles) per title.

        Returns:
            The position of the title of each text in ``title_ids`` (ascending), and the texts.
        """
        if not (len(title_ids) and max_texts):
            return np.zeros(0, dtype=np.int64), []
        described_file, variants = self.folder / "described.parquet", self.folder / "variants.parquet"
        with temporary_database(self.folder, MEMORY_BYTES) as connection:
            write_descriptions(
                connection, self.folder, variants, described_file, DESCRIPTION_CHARACTERS, sub_titles=True
            )
        texts = TitleTexts(self.folder / "shows.parquet", described_file, self.is_placeholder, max_texts)
        position_of_title, positions, selected_texts = self._positions(title_ids), [], []
        for batch_ids, batch_texts in texts.description_batches():
            for position, text in zip(position_of_title[batch_ids].tolist(), batch_texts, strict=True):
                if position >= 0:
                    positions.append(position)
                    selected_texts.append(text)
        return np.array(positions, dtype=np.int64), selected_texts


def read_rows(file: Path, columns: Sequence[str]) -> Iterator[tuple]:
    """Yields the rows of a Parquet file as tuples of the values of ``columns``. Reads batch by batch."""
    batches = pq.ParquetFile(file, pre_buffer=False).iter_batches(
        BATCH_ROWS, columns=columns, use_threads=False
    )
    for batch in batches:
        yield from zip(*(batch[name].to_pylist() for name in columns))


def gather_titles(folder: Path) -> GuideTitles:
    """Groups the raw titles in the tables of a guide (survey.py) by show key."""
    raw_file = folder / "raw.parquet"
    with temporary_database(folder, MEMORY_BYTES) as connection:
        write_raw_titles(connection, folder, raw_file, PIECE_ROWS)
        parsed_files = [folder / f"parsed-{piece:05}.parquet" for piece in pieces.pieces_of(raw_file)]
        for piece, file in enumerate(parsed_files):
            parse_piece(raw_file, piece, file)
        write_shows(connection, parsed_files, folder / "shows.parquet", folder / "variants.parquet")
        category_lists = _category_lists(connection, folder, folder / "variants.parquet")
    shows = pq.read_table(folder / "shows.parquet")
    variants = pq.read_table(folder / "variants.parquet")
    title_of_raw = dict(zip(variants["raw_title"].to_pylist(), variants["title_id"].to_pylist(), strict=True))
    has_gap = np.zeros(len(shows), dtype=bool)
    columns = ["title", "categories", "place"]
    for raw_title, categories, place in read_rows(folder / "programmes.parquet", columns):
        has_gap[title_of_raw[raw_title]] |= not categories and place >= 0
    return GuideTitles(
        folder=folder,
        titles=shows["title"].to_pylist(),
        raw_titles=shows["raw_title"].to_pylist(),
        show_keys=shows["show_key"].to_pylist(),
        languages=[code or "" for code in shows["language"].to_pylist()],
        is_placeholder=shows["placeholder"].to_numpy().astype(bool),
        title_of_raw=title_of_raw,
        category_lists={title_id: tuple(categories) for title_id, categories in category_lists},
        has_gap=has_gap,
    )


def _category_lists(connection: Connection, guide: Path, variants: Path) -> list[tuple[int, list[str]]]:
    """Returns (title_id, most frequent list of categories) for each title that has categories.

    Of equally frequent lists, the shortest is returned, and of these the first in alphabetical order.
    """
    query = """
        SELECT title_id, arg_min(categories, (-airings, len(categories), categories))
        FROM (
            SELECT title_id, categories, count(*) AS airings
            FROM read_parquet(?)
            JOIN read_parquet(?) ON raw_title = title
            WHERE len(categories) > 0
            GROUP BY title_id, categories
        )
        GROUP BY title_id
        ORDER BY title_id
    """
    files = guide / "programmes.parquet", variants
    return connection.execute(query, [*map(escape_glob, files)]).fetchall()
