"""Titles of a guide, with the data that needs no model.

Shows, airings and descriptions come from the same queries as in the nightly run.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from storage.catalogue.contexts import write_contexts
from storage.catalogue.titles import category_lists, write_descriptions, write_raw_titles, write_shows
from storage.formats import vocabulary as pieces
from tasks.preprocess.sentences import TitleTexts
from tasks.sentences.encoder import DESCRIPTION_CHARACTERS
from tasks.text.words import CONTEXT_KINDS
from tasks.tokenize.pieces import parse_piece

ROWS = 20_000  # raw titles parsed at a time


@dataclass(frozen=True)
class GuideTitles:
    """Titles of one guide, sorted by show key; lists have one entry per title."""

    folder: Path
    title: list[str]
    raw_title: list[str]
    show_key: list[str]
    language: list[str]  # empty if unknown
    placeholder: np.ndarray  # bool
    title_of_raw: dict[str, int]  # raw title to title
    categories: dict[int, tuple[str, ...]]  # most frequent list of each title that has any
    has_gap: np.ndarray  # bool: a programme of the title lacks categories and has a place for them

    def contexts(self, titles: np.ndarray) -> list[list[str]]:
        """Returns the context tokens (channel, hour, ...) of each title."""
        if not len(titles):
            return []
        file = self.folder / "contexts.parquet"
        write_contexts(self.folder, self.folder / "variants.parquet", [], None, CONTEXT_KINDS, file)
        table = pq.read_table(file, columns=["title_id", "token"])
        owners, position = table["title_id"].to_numpy(), np.full(len(self.title), -1)
        position[titles] = np.arange(len(titles))
        chosen = np.flatnonzero(position[owners] >= 0)
        tokens_of: list[list[str]] = [[] for _ in titles]
        tokens = table["token"].take(chosen).to_pylist()
        for owner, token in zip(position[owners[chosen]].tolist(), tokens, strict=True):
            tokens_of[owner].append(token)
        return tokens_of

    def descriptions(self, titles: np.ndarray, max_texts: int) -> tuple[np.ndarray, list[str]]:
        """Returns ascending positions in ``titles`` and texts that describe them, at most
        ``max_texts`` each.
        """
        if not (len(titles) and max_texts):
            return np.zeros(0, dtype=np.int64), []
        described, variants = self.folder / "described.parquet", self.folder / "variants.parquet"
        write_descriptions(self.folder, variants, described, DESCRIPTION_CHARACTERS, sub_titles=True)
        texts = TitleTexts(self.folder / "shows.parquet", described, self.placeholder, max_texts)
        position, owners, kept_texts = np.full(len(self.title), -1), [], []
        position[titles] = np.arange(len(titles))
        for numbers, batch in texts.of_descriptions():
            for number, text in zip(numbers, batch, strict=True):
                if position[number] >= 0:
                    owners.append(position[number])
                    kept_texts.append(text)
        return np.array(owners, dtype=np.int64), kept_texts


def gather_titles(folder: Path) -> GuideTitles:
    """Groups the raw titles of a survey by show."""
    raw = folder / "raw.parquet"
    write_raw_titles(folder, raw, ROWS)
    parsed = [folder / f"parsed-{piece:05}.parquet" for piece in pieces.pieces_of(raw)]
    for piece, file in enumerate(parsed):
        parse_piece(raw, piece, file)
    write_shows(parsed, folder / "shows.parquet", folder / "variants.parquet")
    shows = pq.read_table(folder / "shows.parquet")
    variants = pq.read_table(folder / "variants.parquet")
    of_raw = dict(zip(variants["raw_title"].to_pylist(), variants["title_id"].to_pylist(), strict=True))
    title, raw_title, show_key = (shows[name].to_pylist() for name in ("title", "raw_title", "show_key"))
    language = [code or "" for code in shows["language"].to_pylist()]
    placeholder = shows["placeholder"].to_numpy().astype(bool)
    lists = category_lists(folder, folder / "variants.parquet", folder)
    categories = {number: tuple(title_categories) for number, title_categories in lists}
    has_gap = np.zeros(len(title), dtype=bool)
    programmes = pq.ParquetFile(folder / "programmes.parquet", pre_buffer=False)
    for batch in programmes.iter_batches(ROWS, columns=["title", "categories", "place"], use_threads=False):
        for raw, title_categories, place in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            has_gap[of_raw[raw]] |= not title_categories and place >= 0
    return GuideTitles(folder, title, raw_title, show_key, language, placeholder, of_raw, categories, has_gap)
