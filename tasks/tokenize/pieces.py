"""Groups titles into shows, and tokenizes the titles in several processes.

A piece is a row group of titles.parquet, and each process has one piece in memory.
storage/formats/vocabulary.py describes the two files that are written for each piece. The vocabulary does not
depend on the size of pieces, because the counts of all pieces are summed and token ids are assigned
afterwards (token_table.py).
"""

from collections import defaultdict
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import Ragged, offsets_of
from storage.catalogue.connection import Connection
from storage.formats import vocabulary
from tasks.pool import Submit
from tasks.text.titles import is_placeholder, parse_title
from tasks.text.tokenizers import read_tokenizer
from tasks.text.words import KINDS
from tasks.tokenize.shows import write_shows
from tasks.tokenize.splits import EarlierSplit, Split, SplitSettings, split_titles

BLOCK_TITLES = 2000  # titles tokenized at once


def gather_shows(connection: Connection, raw: Path, folder: Path, submit: Submit) -> Path:
    """Groups raw titles into shows, and writes variants.parquet (raw_title, title_id).

    Args:
        connection: Temporary database.
        raw: File that ``write_raw_titles`` has written; temporary files are written to its folder.
        folder: Folder of variants.parquet.
        submit: Function that starts a function in another process.

    Returns:
        Temporary file with one row per show.
    """
    parsed_files = [raw.parent / f"parsed-{piece:05}.parquet" for piece in vocabulary.pieces_of(raw)]
    for future in [submit(parse_piece, raw, piece, file) for piece, file in enumerate(parsed_files)]:
        future.result()
    shows = raw.parent / "shows.parquet"
    write_shows(connection, parsed_files, shows, folder / "variants.parquet")
    return shows


def write_titles(
    shows: Path, settings: SplitSettings, path: Path, rows: int, earlier: EarlierSplit | None = None
) -> Split:
    """Assigns shows to training and held-out sets, and writes titles.parquet (one row per show).

    Args:
        shows: File that ``gather_shows`` has written.
        settings: Settings of the held-out sets.
        path: File to write.
        rows: Titles per piece (row group of the file).
        earlier: Sets of the night whose tokens are used again; None if there is none.
    """
    numbers = pq.read_table(shows, columns=["first_airing", "last_airing", "placeholder"])
    first_start, last, is_placeholder = (column.to_numpy() for column in numbers.columns)
    last_start = int(last.max()) if len(last) else 0
    keys, families = vocabulary.texts_of(shows, "show_key"), vocabulary.texts_of(shows, "family")
    inputs = keys, families, first_start, last_start, is_placeholder.astype(bool)
    split_ids = split_titles(*inputs, settings, earlier)
    names, begin = pa.array(vocabulary.SPLITS), 0
    with pq.ParquetWriter(path, vocabulary.TITLES, compression="zstd") as writer:
        for batch in vocabulary.batches_of(shows, rows=rows):
            splits = names.take(pa.array(split_ids.codes[begin : begin + len(batch)]))
            columns = pa.table(batch.append_column("split", splits)).select(vocabulary.TITLES.names)
            writer.write_table(columns.cast(vocabulary.TITLES))
            begin += len(batch)
    return split_ids


def parse_piece(raw: Path, piece: int, out: Path) -> None:
    """Parses the raw titles of a row group and writes them to ``out``, with additional columns.

    The new columns are display (title without additions), show_key, family (franchise) and placeholder.
    """
    group = vocabulary.read_piece(raw, piece)
    titles = [parse_title(raw) for raw in group["raw_title"].to_pylist()]
    for name in ("display", "show_key", "family"):
        group = group.append_column(name, pa.array([getattr(title, name) for title in titles], pa.string()))
    placeholder = pa.array([is_placeholder(title.show_key) for title in titles], pa.bool_())
    pq.write_table(group.append_column("placeholder", placeholder), out)


def tokenize_titles(titles: Path, folder: Path, submit: Submit) -> list[Path]:
    """Tokenizes all pieces of a file of titles in parallel. Returns the file of tokens of each piece.

    Args:
        titles: Parquet file of titles; a piece is a row group.
        folder: Folder with the tokenizer, to which the files of tokens are written.
        submit: Function that starts a function in another process.
    """
    pieces = vocabulary.pieces_of(titles)
    for future in [submit(tokenize_piece, titles, piece, folder) for piece in pieces]:
        future.result()
    return [vocabulary.dictionary_file(folder, piece) for piece in pieces]


def tokenize_piece(titles: Path, piece: int, folder: Path) -> None:
    """Tokenizes a piece (row group) of titles. Writes tokens with counts, and token ids of titles."""
    group, tokenizer = vocabulary.read_piece(titles, piece, ["raw_title", "split"]), read_tokenizer(folder)
    raw_titles, lengths, values = group["raw_title"].to_pylist(), [], []
    # numbers tokens in the order of their first occurrence
    number_of: defaultdict[tuple[int, str], int] = defaultdict(count().__next__)
    for start in range(0, len(raw_titles), BLOCK_TITLES):
        for title in tokenizer.all_tokens(raw_titles[start : start + BLOCK_TITLES]):
            lengths.append(len(title))
            values.extend(map(number_of.__getitem__, title))
    tokens = Ragged(offsets_of(lengths), np.array(values, dtype=np.int32))
    in_training = np.repeat(group["split"].to_numpy() == vocabulary.SPLITS[vocabulary.TRAIN], lengths)
    pairs = tokens.row_ids[in_training] * len(number_of) + tokens.values[in_training]
    pairs.sort()  # np.unique is slower
    # contains each token once per title
    title_tokens = pairs[np.diff(pairs, prepend=-1) > 0] % max(1, len(number_of))
    dictionary = {
        "kind": pa.array([KINDS[kind] for kind, _ in number_of], pa.string()),
        "token": pa.array([token for _, token in number_of], pa.string()),
        "term_frequency": np.bincount(tokens.values[in_training], minlength=len(number_of)),
        "document_frequency": np.bincount(title_tokens, minlength=len(number_of)),
    }
    vocabulary.write_piece(folder, piece, dictionary, tokens)
