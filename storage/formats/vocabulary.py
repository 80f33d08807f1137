"""Reads and writes the files of a Vocabulary: distinct titles and their tokens.

titles.parquet          one row per title, in row groups that are called pieces
variants.parquet        raw_title, title_id
contexts.parquet        title_id, kind, token
tokens.parquet          one row per token, in the order of token ids
tokenizer.json          settings of the tokenizer
dictionary-N.parquet    kind, token, term_frequency, document_frequency of the tokens in piece N
tokens-N.parquet        tokens of each title of piece N, as row indices in dictionary-N.parquet
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import Ragged

TRAIN, UNSEEN_TITLE, UNSEEN_SHOW, NEXT_PERIOD, PLACEHOLDER = range(5)
SPLITS = ("train", "unseen_title", "unseen_show", "next_period", "placeholder")
_TEXT_COLUMNS = [
    (name, pa.string()) for name in ("title", "raw_title", "show_key", "family", "language", "split")
]
TITLES = pa.schema([*_TEXT_COLUMNS, ("airings", pa.int64()), ("first_airing", pa.timestamp("us"))])


def dictionary_file(folder: Path, piece: int) -> Path:
    """Returns the path of the dictionary of a piece (number of a row group of titles.parquet)."""
    return folder / f"dictionary-{piece:05}.parquet"


def write_piece(folder: Path, piece: int, dictionary: Mapping[str, object], tokens: Ragged) -> None:
    """Writes the dictionary of a piece (row group of titles.parquet) and the tokens of its titles.

    Args:
        folder: Vocabulary folder.
        piece: Number of the piece.
        dictionary: Columns kind, token, term_frequency and document_frequency of the distinct tokens.
        tokens: Tokens of each title, as row indices in the dictionary, int32.
    """
    pq.write_table(pa.table(dictionary), dictionary_file(folder, piece), compression="zstd")
    ids = pa.ListArray.from_arrays(tokens.offsets.astype(np.int32), tokens.values)
    pq.write_table(pa.table({"tokens": ids}), folder / f"tokens-{piece:05}.parquet", compression="zstd")


def read_tokens(folder: Path, piece: int) -> Ragged:
    """Returns the tokens of each title of a piece (row group), as row indices in the piece's dictionary."""
    ids = pq.read_table(folder / f"tokens-{piece:05}.parquet")["tokens"].combine_chunks()
    return Ragged(ids.offsets.to_numpy(), ids.values.to_numpy())


def pieces_of(file: Path) -> range:
    """Returns the numbers of the pieces (row groups) of a Parquet file. An empty file has one empty piece."""
    return range(max(1, pq.read_metadata(file).num_row_groups))


def read_piece(file: Path, piece: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Reads columns of one piece (row group) of a Parquet file; by default, all columns."""
    parquet_file = pq.ParquetFile(file)
    is_empty = parquet_file.num_row_groups == 0
    return parquet_file.read(columns) if is_empty else parquet_file.read_row_group(piece, columns)


def batches_of(file: Path, columns: list[str] | None = None, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Yields batches of at most ``rows`` rows of a Parquet file. Only one batch is in memory at a time."""
    return pq.ParquetFile(file, pre_buffer=False).iter_batches(rows, columns=columns)


def texts_of(file: Path, column: str) -> Iterator[str]:
    """Yields the values of a text column of a Parquet file. Only one batch is in memory at a time."""
    for batch in batches_of(file, [column]):
        yield from batch.column(0).to_pylist()
