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


def gather_shows(connection: Connection, raw_titles: Path, folder: Path, submit: Submit) -> Path:
    """Groups raw titles into shows, and writes variants.parquet (raw_title, title_id).

    Args:
        connection: Temporary database.
        raw_titles: File that ``write_raw_titles`` has written; temporary files are written to its folder.
        folder: Folder of variants.parquet.
        submit: Function that starts a function in another process.

    Returns:
        Temporary file with one row per show.
    """
    work = raw_titles.parent
    parsed_files = [work / f"parsed-{piece:05}.parquet" for piece in vocabulary.pieces_of(raw_titles)]
    for future in [submit(parse_piece, raw_titles, piece, file) for piece, file in enumerate(parsed_files)]:
        future.result()
    shows = work / "shows.parquet"
    write_shows(connection, parsed_files, shows, folder / "variants.parquet")
    return shows


def write_titles(
    shows: Path, settings: SplitSettings, path: Path, piece_titles: int, earlier: EarlierSplit | None = None
) -> Split:
    """Assigns shows to training and held-out sets, and writes titles.parquet (one row per show).

    Args:
        shows: File that ``gather_shows`` has written.
        settings: Settings of the held-out sets.
        path: File to write.
        piece_titles: Number of titles in a piece (row group of the file).
        earlier: Training and held-out sets of the night whose tokens are used again; None: no such night.
    """
    table = pq.read_table(shows, columns=["first_airing", "last_airing", "placeholder"])
    first_airings, last_airings, placeholders = (column.to_numpy() for column in table.columns)
    split = split_titles(
        show_keys=vocabulary.texts_of(shows, "show_key"),
        families=vocabulary.texts_of(shows, "family"),
        first_airings=first_airings,
        last_start=int(last_airings.max()) if len(last_airings) else 0,
        placeholders=placeholders.astype(bool),
        settings=settings,
        earlier=earlier,
    )
    names, begin = pa.array(vocabulary.SPLITS), 0
    with pq.ParquetWriter(path, vocabulary.TITLES, compression="zstd") as writer:
        for batch in vocabulary.batches_of(shows, rows=piece_titles):
            split_names = names.take(pa.array(split.codes[begin : begin + len(batch)]))
            columns = pa.table(batch.append_column("split", split_names)).select(vocabulary.TITLES.names)
            writer.write_table(columns.cast(vocabulary.TITLES))
            begin += len(batch)
    return split


def parse_piece(raw_titles: Path, piece: int, path: Path) -> None:
    """Parses the raw titles of a row group and writes the row group to ``path`` with additional columns.

    The new columns are display (title without additions), show_key, family (franchise) and placeholder.
    """
    row_group = vocabulary.read_piece(raw_titles, piece)
    titles = [parse_title(raw) for raw in row_group["raw_title"].to_pylist()]
    for name in ("display", "show_key", "family"):
        column = pa.array([getattr(title, name) for title in titles], pa.string())
        row_group = row_group.append_column(name, column)
    placeholder = pa.array([is_placeholder(title.show_key) for title in titles], pa.bool_())
    pq.write_table(row_group.append_column("placeholder", placeholder), path)


def tokenize_titles(titles: Path, folder: Path, submit: Submit) -> list[Path]:
    """Tokenizes all pieces of a file of titles in parallel. Returns the dictionary file of each piece.

    Args:
        titles: Parquet file of titles; a piece is a row group.
        folder: Folder with the settings of the tokenizer. The tokens of each piece are written to it.
        submit: Function that starts a function in another process.
    """
    pieces = vocabulary.pieces_of(titles)
    for future in [submit(tokenize_piece, titles, piece, folder) for piece in pieces]:
        future.result()
    return [vocabulary.dictionary_file(folder, piece) for piece in pieces]


def tokenize_piece(titles: Path, piece: int, folder: Path) -> None:
    """Tokenizes the titles of a row group. Writes the tokens with counts, and the token numbers of titles."""
    row_group = vocabulary.read_piece(titles, piece, ["raw_title", "split"])
    tokenizer = read_tokenizer(folder)
    lengths, numbers = [], []
    # Tokens are numbered in the order of their first occurrence in the piece.
    number_of: defaultdict[tuple[int, str], int] = defaultdict(count().__next__)
    for raw_title in row_group["raw_title"].to_pylist():
        title_tokens = tokenizer.tokens(raw_title)
        lengths.append(len(title_tokens))
        numbers.extend(map(number_of.__getitem__, title_tokens))
    tokens = Ragged(offsets_of(lengths), np.array(numbers, dtype=np.int32))
    in_training = np.repeat(row_group["split"].to_numpy() == vocabulary.SPLITS[vocabulary.TRAIN], lengths)
    title_and_token = tokens.row_ids[in_training] * len(number_of) + tokens.values[in_training]
    title_and_token.sort()  # np.unique is slower
    # Contains each token once per title.
    distinct_tokens = title_and_token[np.diff(title_and_token, prepend=-1) > 0] % max(1, len(number_of))
    dictionary = {
        "kind": pa.array([KINDS[kind] for kind, _ in number_of], pa.string()),
        "token": pa.array([token for _, token in number_of], pa.string()),
        "term_frequency": np.bincount(tokens.values[in_training], minlength=len(number_of)),
        "document_frequency": np.bincount(distinct_tokens, minlength=len(number_of)),
    }
    vocabulary.write_piece(folder, piece, dictionary, tokens)
