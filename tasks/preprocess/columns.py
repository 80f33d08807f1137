"""Long columns of a Vocabulary's Parquet files as the arrays of a Corpus; what is text is in memory for one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.arrays import ArrayWriter
from tasks.tokenize.pieces import batches_of
from tasks.tokenize.words import KINDS


def codes(file: Path, column: str, known: Sequence[str]) -> np.ndarray:
    """int8 (rows,): places of a column's texts in a list of all there are."""
    return np.concatenate([np.zeros(0, dtype=np.int8), *(_codes(part, known) for part in _parts(file, column))])


def groups(file: Path, column: str) -> np.ndarray:
    """int32 (rows,): numbers, equal for equal texts, in the order in which texts are met."""
    chunks = pa.chunked_array(list(_parts(file, column)), pa.string()).dictionary_encode().chunks
    return np.concatenate([np.zeros(0, dtype=np.int32), *(chunk.indices.to_numpy().astype(np.int32) for chunk in chunks)])


def write_tokens(vocabulary: Path, folder: Path) -> int:
    """Writes what has a row a token: kinds.npy (int8), weights.npy (float32) and, so that errors can name tokens, token_names.parquet; how many."""
    file = vocabulary / "tokens.parquet"
    names = pa.schema([pq.read_schema(file).field(name) for name in ("kind", "token")])
    with (
        ArrayWriter(folder, "kinds", np.int8) as kinds,
        ArrayWriter(folder, "weights", np.float32) as weights,
        pq.ParquetWriter(folder / "token_names.parquet", names, compression="zstd") as writer,
    ):
        for batch in batches_of(file, ["kind", "token", "weight"]):
            kinds.append(_codes(batch["kind"], KINDS))
            weights.append(batch["weight"].to_numpy())
            writer.write_batch(batch.select(["kind", "token"]))
    return pq.read_metadata(file).num_rows


def _parts(file: Path, column: str) -> Iterator[pa.Array]:
    for batch in batches_of(file, [column]):
        yield batch.column(0)


def _codes(texts: pa.Array, known: Sequence[str]) -> np.ndarray:
    return pc.index_in(texts, value_set=pa.array(known)).to_numpy().astype(np.int8)  # pyright: ignore[reportAttributeAccessIssue]
