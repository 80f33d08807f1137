"""Titles to shows and to tokens, piece by piece, in any process: the slow part, with one piece in memory.

A piece is a row group of titles.parquet; storage/formats/vocabulary.py describes its two files. Counts of
pieces are added up, so that no way of cutting or distributing them changes a vocabulary; token ids are
assigned later, by a join (storage/catalogue/frequencies.py).
"""

from collections import defaultdict
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import Ragged, offsets_of
from storage.catalogue.titles import write_shows
from storage.formats import vocabulary
from tasks.pool import Submit
from tasks.text.titles import is_placeholder, parse_title
from tasks.text.tokenizers import read_tokenizer
from tasks.text.words import KINDS
from tasks.tokenize.splits import Split, SplitSettings, split_titles

BLOCK = 2000  # titles whose tokens are texts in memory at a time


def gather_shows(raw: Path, settings: SplitSettings, folder: Path, rows: int, submit: Submit) -> Split:
    """Groups raw titles by show key, splits the shows, and writes titles.parquet and variants.parquet.

    ``raw`` is as write_raw_titles writes it, temporary files are put beside it; a piece has ``rows`` titles.
    """
    parsed = [raw.parent / f"parsed-{piece:05}.parquet" for piece in vocabulary.pieces_of(raw)]
    for future in [submit(parse_piece, raw, piece, file) for piece, file in enumerate(parsed)]:
        future.result()
    shows = raw.parent / "shows.parquet"
    write_shows(parsed, shows, folder / "variants.parquet")
    numbers = pq.read_table(shows, columns=["first_airing", "last_airing", "placeholder"])
    first, last, placeholder = (column.to_numpy() for column in numbers.columns)
    last_start = int(last.max()) if len(last) else 0
    keys, families = vocabulary.texts_of(shows, "show_key"), vocabulary.texts_of(shows, "family")
    split = split_titles(keys, families, first, last_start, placeholder.astype(bool), settings)
    names, begin = pa.array(vocabulary.SPLITS), 0
    with pq.ParquetWriter(folder / "titles.parquet", vocabulary.TITLES, compression="zstd") as writer:
        for batch in vocabulary.batches_of(shows, rows=rows):
            own = names.take(pa.array(split.codes[begin : begin + len(batch)]))
            columns = pa.table(batch.append_column("split", own)).select(vocabulary.TITLES.names)
            writer.write_table(columns.cast(vocabulary.TITLES))
            begin += len(batch)
    return split


def parse_piece(raw: Path, piece: int, out: Path) -> None:
    """Parses the titles of a row group; adds display, show_key, family and placeholder to its columns."""
    group = vocabulary.read_piece(raw, piece)
    titles = [parse_title(raw) for raw in group["raw_title"].to_pylist()]
    for name in ("display", "show_key", "family"):
        group = group.append_column(name, pa.array([getattr(title, name) for title in titles], pa.string()))
    placeholder = pa.array([is_placeholder(title.show_key) for title in titles], pa.bool_())
    pq.write_table(group.append_column("placeholder", placeholder), out)


def tokenize_titles(titles: Path, folder: Path, submit: Submit) -> list[Path]:
    """Tokenizes every row group of titles.parquet into the tokenizer's folder; returns the dictionaries."""
    pieces = vocabulary.pieces_of(titles)
    for future in [submit(tokenize_piece, titles, piece, folder) for piece in pieces]:
        future.result()
    return [vocabulary.dictionary_file(folder, piece) for piece in pieces]


def tokenize_piece(titles: Path, piece: int, folder: Path) -> None:
    """Writes the two files of a piece."""
    group, tokenizer = vocabulary.read_piece(titles, piece, ["raw_title", "split"]), read_tokenizer(folder)
    raw_titles, lengths, values = group["raw_title"].to_pylist(), [], []
    own: defaultdict[tuple[int, str], int] = defaultdict(count().__next__)  # a new token gets the next number
    for start in range(0, len(raw_titles), BLOCK):
        for title in tokenizer.all_tokens(raw_titles[start : start + BLOCK]):
            lengths.append(len(title))
            values.extend(map(own.__getitem__, title))
    tokens = Ragged(offsets_of(lengths), np.array(values, dtype=np.int32))
    counted = np.repeat(group["split"].to_numpy() == vocabulary.SPLITS[vocabulary.TRAIN], lengths)
    pairs = np.sort(tokens.owners[counted] * len(own) + tokens.values[counted])  # np.unique is slower
    held = pairs[np.diff(pairs, prepend=-1) > 0] % max(1, len(own))  # each token of a title once
    dictionary = {
        "kind": pa.array([KINDS[kind] for kind, _ in own], pa.string()),
        "token": pa.array([token for _, token in own], pa.string()),
        "term_frequency": np.bincount(tokens.values[counted], minlength=len(own)),
        "document_frequency": np.bincount(held, minlength=len(own)),
    }
    vocabulary.write_piece(folder, piece, dictionary, tokens)
