"""The titles of a surveyed guide, and what is known of each without a model.

Shows, airings and descriptions are found as the nightly run finds them, by the same queries.
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
    """Titles of one guide, sorted by show key; a list has an entry a title."""

    folder: Path
    title: list[str]
    raw_title: list[str]
    show_key: list[str]
    language: list[str]  # empty where none is said
    placeholder: np.ndarray  # bool
    of_raw: dict[str, int]  # raw title to title
    categories: dict[int, tuple[str, ...]]  # of titles that have any: the list that most programmes have
    has_gap: np.ndarray  # bool: a programme of the title has no categories and a place for some

    def contexts(self, wanted: np.ndarray) -> list[list[str]]:
        """Tokens of how each of the wanted titles airs."""
        if not len(wanted):
            return []
        file = self.folder / "contexts.parquet"
        write_contexts(self.folder, self.folder / "variants.parquet", [], None, CONTEXT_KINDS, file)
        table = pq.read_table(file, columns=["title_id", "token"])
        owners, place = table["title_id"].to_numpy(), np.full(len(self.title), -1)
        place[wanted] = np.arange(len(wanted))
        chosen = np.flatnonzero(place[owners] >= 0)
        found: list[list[str]] = [[] for _ in wanted]
        tokens = table["token"].take(chosen).to_pylist()
        for owner, token in zip(place[owners[chosen]].tolist(), tokens, strict=True):
            found[owner].append(token)
        return found

    def descriptions(self, wanted: np.ndarray, most: int) -> tuple[np.ndarray, list[str]]:
        """Places in ``wanted``, rising, and what describes those titles, at most so many texts each."""
        if not (len(wanted) and most):
            return np.zeros(0, dtype=np.int64), []
        described, variants = self.folder / "described.parquet", self.folder / "variants.parquet"
        write_descriptions(self.folder, variants, described, DESCRIPTION_CHARACTERS, sub_titles=True)
        texts = TitleTexts(self.folder / "shows.parquet", described, self.placeholder, most)
        place, owners, found = np.full(len(self.title), -1), [], []
        place[wanted] = np.arange(len(wanted))
        for numbers, said in texts.of_descriptions():
            for number, text in zip(numbers, said, strict=True):
                if place[number] >= 0:
                    owners.append(place[number])
                    found.append(text)
        return np.array(owners, dtype=np.int64), found


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
    categories = {number: tuple(own) for number, own in lists}
    has_gap = np.zeros(len(title), dtype=bool)
    programmes = pq.ParquetFile(folder / "programmes.parquet", pre_buffer=False)
    for batch in programmes.iter_batches(ROWS, columns=["title", "categories", "place"], use_threads=False):
        for raw, own, place in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            has_gap[of_raw[raw]] |= not own and place >= 0
    return GuideTitles(folder, title, raw_title, show_key, language, placeholder, of_raw, categories, has_gap)
