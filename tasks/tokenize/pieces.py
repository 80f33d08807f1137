"""Titles to tokens, piece by piece, in any process: the part of the stage that takes time, and holds one piece in memory.

A piece is a row group of titles.parquet. Of piece n two files are made: ``dictionary-n.parquet`` (kind, token, how often training
titles of the piece hold it, and how many do; row i is the piece's own id i) and ``tokens-n.parquet`` (``tokens``: the piece's
own ids of each title, in the tokenizer's order). Counts of pieces are added up, so no way of cutting or sharing them out
changes a vocabulary; which id a token has in the end is a join away (storage/catalogue/token_ids.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.pool import AUTOMATIC, PoolSettings, Submit, cores
from tasks.tokenize.splits import SPLITS, TRAIN
from tasks.tokenize.strategies import Fitted, read_tokenizer
from tasks.tokenize.words import KINDS

BLOCK = 2000  # titles whose tokens are texts in memory at a time
PROCESSES_FROM = 50_000  # titles; below, starting processes costs more than they save


def dictionary_file(folder: Path, piece: int) -> Path:
    """Where the tokens of a piece are."""
    return folder / f"dictionary-{piece:05}.parquet"


def tokens_file(folder: Path, piece: int) -> Path:
    """Where the titles of a piece are, as ids of its dictionary."""
    return folder / f"tokens-{piece:05}.parquet"


def pieces_of(file: Path) -> range:
    """Numbers of a Parquet file's pieces; an empty file is one empty piece."""
    return range(max(1, pq.read_metadata(file).num_row_groups))


def read_piece(file: Path, piece: int, columns: Sequence[str] | None = None) -> pa.Table:
    """One piece of a Parquet file."""
    opened = pq.ParquetFile(file)
    if opened.num_row_groups:
        return opened.read_row_group(piece, columns=columns)
    return opened.read(columns=columns)


def batches_of(file: Path, columns: Sequence[str] | None = None, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """A Parquet file's rows; one batch is in memory at a time, without the reading ahead that keeps all it has read."""
    yield from pq.ParquetFile(file, pre_buffer=False).iter_batches(rows, columns=columns)


def texts_of(file: Path, column: str) -> Iterator[str]:
    """A text column of a Parquet file; one batch of it is in memory at a time."""
    for batch in batches_of(file, [column]):
        yield from batch.column(0).to_pylist()


def training_titles(titles: Path) -> Iterator[str]:
    """Raw titles of the training titles; one piece is in memory at a time."""
    for piece in pieces_of(titles):
        group = read_piece(titles, piece, ["raw_title", "split"])
        yield from group.filter(pc.equal(group["split"], SPLITS[TRAIN]))["raw_title"].to_pylist()  # pyright: ignore[reportAttributeAccessIssue]


def processes(settings: PoolSettings, titles: int) -> int:
    """Workers for that many titles: as the settings say, or where they leave it open none for few, else one a core."""
    if settings.workers != AUTOMATIC:
        return settings.workers
    return 0 if settings.pool == "processes" and titles < PROCESSES_FROM else cores()


def tokenize_titles(titles: Path, folder: Path, submit: Submit) -> list[Path]:
    """Tokenizes every row group of titles.parquet.

    Args:
        titles: titles.parquet.
        folder: Where the pieces' files go, and the tokenizer is.
        submit: Where the work is done (tasks/pool.py).

    Returns:
        The dictionaries, piece by piece.
    """
    pieces = pieces_of(titles)
    for future in [submit(tokenize_piece, titles, piece, folder) for piece in pieces]:
        future.result()
    return [dictionary_file(folder, piece) for piece in pieces]


def tokenize_piece(titles: Path, piece: int, folder: Path) -> None:
    """Writes the two files of a piece."""
    group = read_piece(titles, piece, ["raw_title", "split"])
    own = _Numbers()
    lengths, values = _number(group["raw_title"].to_pylist(), read_tokenizer(folder), own)
    titles_of = np.repeat(np.arange(len(lengths)), lengths)
    counted = np.array([split == SPLITS[TRAIN] for split in group["split"].to_pylist()], dtype=bool)[titles_of]
    pairs = np.sort(titles_of[counted] * len(own) + values[counted])  # np.unique takes ten times as long
    held = pairs[np.diff(pairs, prepend=-1) > 0] % max(1, len(own))  # each token of a title once
    table = pa.table(
        {
            "kind": pa.array([KINDS[kind] for kind, _ in own], pa.string()),
            "token": pa.array([token for _, token in own], pa.string()),
            "term_frequency": np.bincount(values[counted], minlength=len(own)),
            "document_frequency": np.bincount(held, minlength=len(own)),
        }
    )
    pq.write_table(table, dictionary_file(folder, piece), compression="zstd")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    pq.write_table(pa.table({"tokens": pa.ListArray.from_arrays(offsets, values)}), tokens_file(folder, piece), compression="zstd")


class _Numbers(dict[tuple[int, str], int]):
    """Numbers of tokens; a new one gets the next."""

    def __missing__(self, token: tuple[int, str]) -> int:
        self[token] = number = len(self)
        return number


def _number(raw_titles: Sequence[str], tokenizer: Fitted, own: _Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of tokens of titles (int64), and the tokens as numbers (int32), given to new ones in the order met."""
    lengths: list[int] = []
    values: list[int] = []
    for start in range(0, len(raw_titles), BLOCK):
        for tokens in tokenizer.all_tokens(raw_titles[start : start + BLOCK]):
            lengths.append(len(tokens))
            values.extend(map(own.__getitem__, tokens))
    return np.array(lengths, dtype=np.int64), np.array(values, dtype=np.int32)
