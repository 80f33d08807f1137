"""Reads and writes the files of a Vocabulary: distinct titles and their tokens.

The files are titles.parquet (a row per title), variants.parquet (raw_title, title_id), contexts.parquet
(title_id, kind, token), tokens.parquet (row i is token id i) and tokenizer.json. A row group of
titles.parquet is called a piece, and each piece n has two more files. ``dictionary-n.parquet`` has kind,
token, term_frequency and document_frequency of each token in the piece; row i is the token with the local id
i. ``tokens-n.parquet`` has the local ids of the tokens of each title.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import Ragged

TRAIN, UNSEEN_TITLE, UNSEEN_SHOW, NEXT_PERIOD, PLACEHOLDER = range(5)
SPLITS = ("train", "unseen_title", "unseen_show", "next_period", "placeholder")
_TEXTS = [(name, pa.string()) for name in ("title", "raw_title", "show_key", "family", "language", "split")]
TITLES = pa.schema([*_TEXTS, ("airings", pa.int64()), ("first_airing", pa.timestamp("us"))])


def dictionary_file(folder: Path, piece: int) -> Path:
    """Returns the path of the dictionary of a piece; ``piece`` is a row group number of titles.parquet."""
    return folder / f"dictionary-{piece:05}.parquet"


def write_piece(folder: Path, piece: int, dictionary: Mapping[str, object], tokens: Ragged) -> None:
    """Writes the tokens of a piece (row group of titles.parquet) and the token ids of its titles.

    Args:
        folder: Vocabulary folder.
        piece: Number of the piece.
        dictionary: Columns kind, token, term_frequency and document_frequency of the distinct tokens.
        tokens: Rows of the dictionary that are the tokens of each title, int32.
    """
    pq.write_table(pa.table(dictionary), dictionary_file(folder, piece), compression="zstd")
    ids = pa.ListArray.from_arrays(tokens.offsets.astype(np.int32), tokens.values)
    pq.write_table(pa.table({"tokens": ids}), folder / f"tokens-{piece:05}.parquet", compression="zstd")


def read_tokens(folder: Path, piece: int) -> Ragged:
    """Reads the tokens of the titles of a piece (row group): row indices in the dictionary of the piece."""
    ids = pq.read_table(folder / f"tokens-{piece:05}.parquet")["tokens"].combine_chunks()
    return Ragged(ids.offsets.to_numpy(), ids.values.to_numpy())


def pieces_of(file: Path) -> range:
    """Returns the numbers of the pieces (row groups) of a Parquet file; an empty file has one empty piece."""
    return range(max(1, pq.read_metadata(file).num_row_groups))


def read_piece(file: Path, piece: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Reads one piece (row group) of a Parquet file."""
    parquet = pq.ParquetFile(file)
    return parquet.read_row_group(piece, columns) if parquet.num_row_groups else parquet.read(columns)


def batches_of(file: Path, columns: list[str] | None = None, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Yields batches of ``rows`` rows of a Parquet file; only one batch is in memory at a time."""
    return pq.ParquetFile(file, pre_buffer=False).iter_batches(rows, columns=columns)


def texts_of(file: Path, column: str) -> Iterator[str]:
    """Yields the values of a text column of a Parquet file; only one batch is in memory at a time."""
    for batch in batches_of(file, [column]):
        yield from batch.column(0).to_pylist()
