"""Format of a Vocabulary.

titles.parquet (a row per title), variants.parquet (raw_title, title_id), contexts.parquet (title_id, kind,
token), tokens.parquet (row i is token id i), tokenizer.json, and two files for each row group (piece) of
titles.parquet: ``dictionary-n.parquet`` has kind, token, term_frequency and document_frequency; row i is the
token with local id i. ``tokens-n.parquet`` has the local ids of each title, in tokenizer order.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.arrays import Ragged

TRAIN, UNSEEN_TITLE, UNSEEN_SHOW, NEXT_PERIOD, PLACEHOLDER = range(5)
SPLITS = ("train", "unseen_title", "unseen_show", "next_period", "placeholder")
_TEXTS = [(name, pa.string()) for name in ("title", "raw_title", "show_key", "family", "language", "split")]
TITLES = pa.schema([*_TEXTS, ("airings", pa.int64()), ("first_airing", pa.timestamp("us"))])


def dictionary_file(folder: Path, piece: int) -> Path:
    """Returns the path of the dictionary of a piece."""
    return folder / f"dictionary-{piece:05}.parquet"


def write_piece(folder: Path, piece: int, dictionary: Mapping[str, object], tokens: Ragged) -> None:
    """Writes the two files of a piece: dictionary columns, and the local int32 ids of each title."""
    pq.write_table(pa.table(dictionary), dictionary_file(folder, piece), compression="zstd")
    ids = pa.ListArray.from_arrays(tokens.offsets.astype(np.int32), tokens.values)
    pq.write_table(pa.table({"tokens": ids}), folder / f"tokens-{piece:05}.parquet", compression="zstd")


def read_tokens(folder: Path, piece: int) -> Ragged:
    """Reads the local ids of each title of a piece."""
    ids = pq.read_table(folder / f"tokens-{piece:05}.parquet")["tokens"].combine_chunks()
    return Ragged(ids.offsets.to_numpy(), ids.values.to_numpy())


def pieces_of(file: Path) -> range:
    """Returns the piece numbers of a Parquet file; an empty file has one empty piece."""
    return range(max(1, pq.read_metadata(file).num_row_groups))


def read_piece(file: Path, piece: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Reads one piece of a Parquet file."""
    opened = pq.ParquetFile(file)
    return opened.read_row_group(piece, columns) if opened.num_row_groups else opened.read(columns)


def batches_of(file: Path, columns: list[str] | None = None, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Iterates over the batches of a Parquet file, of which only one is in memory at a time."""
    return pq.ParquetFile(file, pre_buffer=False).iter_batches(rows, columns=columns)


def texts_of(file: Path, column: str) -> Iterator[str]:
    """Iterates over a text column of a Parquet file with one batch in memory."""
    for batch in batches_of(file, [column]):
        yield from batch.column(0).to_pylist()


def training_titles(titles: Path) -> Iterator[str]:
    """Iterates over the raw titles of the training split with one piece in memory."""
    for piece in pieces_of(titles):
        group = read_piece(titles, piece, ["raw_title", "split"])
        yield from group.filter(pc.field("split") == SPLITS[TRAIN])["raw_title"].to_pylist()
