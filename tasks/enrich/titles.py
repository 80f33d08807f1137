"""Groups the programmes of a guide by title, and computes the inputs of the model: contexts, descriptions.

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
    """Titles of one guide, sorted by show key (normalized title); lists and arrays have one entry per title.

    The index of a title in the lists is also called its id.
    """

    folder: Path  # folder with the tables of the guide (survey.py)
    title: list[str]  # display titles
    raw_title: list[str]  # titles as in the guide
    show_key: list[str]
    language: list[str]  # language code; "" if unknown
    placeholder: np.ndarray  # bool, whether the title names no programme ("To be announced")
    title_of_raw: dict[str, int]  # title index by raw title
    categories: dict[int, tuple[str, ...]]  # most frequent list of categories by index of the title
    has_gap: np.ndarray  # bool, whether categories can be inserted into a programme that lacks them

    def contexts(self, titles: np.ndarray) -> list[list[str]]:
        """Returns the tokens of the airing context (channel, hour, …) of titles with the given indices."""
        if not len(titles):
            return []
        variants, file = self.folder / "variants.parquet", self.folder / "contexts.parquet"
        with temporary_database(self.folder, MEMORY_BYTES) as connection:
            write_contexts(connection, self.folder, variants, [], None, CONTEXT_KINDS, file)
        table = pq.read_table(file, columns=["title_id", "token"])
        title_ids, position = table["title_id"].to_numpy(), np.full(len(self.title), -1)
        position[titles] = np.arange(len(titles))
        rows = np.flatnonzero(position[title_ids] >= 0)
        title_tokens: list[list[str]] = [[] for _ in titles]
        tokens = table["token"].take(rows).to_pylist()
        for index, token in zip(position[title_ids[rows]].tolist(), tokens, strict=True):
            title_tokens[index].append(token)
        return title_tokens

    def descriptions(self, titles: np.ndarray, max_texts: int) -> tuple[np.ndarray, list[str]]:
        """Reads the descriptions of titles; titles with too few descriptions also have sub-titles as texts.

        Args:
            titles: Indices of titles.
            max_texts: Maximum number of texts (descriptions and sub-titles) per title.

        Returns:
            The position of the title of each text in ``titles`` (ascending), and the texts.
        """
        if not (len(titles) and max_texts):
            return np.zeros(0, dtype=np.int64), []
        described_file, variants = self.folder / "described.parquet", self.folder / "variants.parquet"
        with temporary_database(self.folder, MEMORY_BYTES) as connection:
            write_descriptions(
                connection, self.folder, variants, described_file, DESCRIPTION_CHARACTERS, sub_titles=True
            )
        texts = TitleTexts(self.folder / "shows.parquet", described_file, self.placeholder, max_texts)
        position_of_title, positions, selected_texts = np.full(len(self.title), -1), [], []
        position_of_title[titles] = np.arange(len(titles))
        for title_ids, batch in texts.of_descriptions():
            for position, text in zip(position_of_title[title_ids].tolist(), batch, strict=True):
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
    raw = folder / "raw.parquet"
    with temporary_database(folder, MEMORY_BYTES) as connection:
        write_raw_titles(connection, folder, raw, PIECE_ROWS)
        parsed_files = [folder / f"parsed-{piece:05}.parquet" for piece in pieces.pieces_of(raw)]
        for piece, file in enumerate(parsed_files):
            parse_piece(raw, piece, file)
        write_shows(connection, parsed_files, folder / "shows.parquet", folder / "variants.parquet")
        category_lists = _category_lists(connection, folder, folder / "variants.parquet")
    shows = pq.read_table(folder / "shows.parquet")
    variants = pq.read_table(folder / "variants.parquet")
    title_of_raw = dict(zip(variants["raw_title"].to_pylist(), variants["title_id"].to_pylist(), strict=True))
    title, raw_title, show_key = (shows[name].to_pylist() for name in ("title", "raw_title", "show_key"))
    language = [code or "" for code in shows["language"].to_pylist()]
    placeholder = shows["placeholder"].to_numpy().astype(bool)
    categories = {title_id: tuple(category_list) for title_id, category_list in category_lists}
    has_gap = np.zeros(len(title), dtype=bool)
    columns = ["title", "categories", "place"]
    for raw, programme_categories, place in read_rows(folder / "programmes.parquet", columns):
        has_gap[title_of_raw[raw]] |= not programme_categories and place >= 0
    return GuideTitles(
        folder, title, raw_title, show_key, language, placeholder, title_of_raw, categories, has_gap
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
