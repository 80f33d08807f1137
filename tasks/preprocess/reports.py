"""What a Corpus tells people beside what training reads: frequencies of words, and categories that were dropped."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import Ragged, open_array
from storage.catalogue.slices import write_slices
from tasks.tokenize.words import WORD

TITLES = 50_000  # in memory at a time


def write_frequencies(corpus: Path, guide: Path, vocabulary: Path) -> int:
    """Writes frequencies.parquet into a Corpus folder that has its arrays (see storage/catalogue/slices.py); rows written."""
    kinds = np.asarray(open_array(corpus, "kinds"))
    names = pa.array(json.loads((corpus / "label_names.json").read_text(encoding="utf-8")), pa.string())
    with tempfile.TemporaryDirectory(dir=corpus, prefix="work-") as name:
        words, labels = Path(name) / "words.parquet", Path(name) / "labels.parquet"
        with pq.ParquetWriter(words, pa.schema([("title_id", pa.int32()), ("token_id", pa.int32())]), compression="zstd") as writer:
            for titles, tokens in _entries(corpus, "tokens"):
                own = kinds[tokens] == WORD
                writer.write_table(pa.table([titles[own], tokens[own]], schema=writer.schema))
        with pq.ParquetWriter(labels, pa.schema([("title_id", pa.int32()), ("label", pa.string())]), compression="zstd") as writer:
            for titles, numbers in _entries(corpus, "labels"):
                writer.write_table(pa.table([titles, names.take(pa.array(numbers))], schema=writer.schema))
        return write_slices(guide, vocabulary, words, labels, corpus / "frequencies.parquet")


def _entries(folder: Path, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Titles (int32) and values of a ragged array's entries, a run of titles at a time. It is mapped anew for each, so that no more of it is in memory."""
    for begin in range(0, len(Ragged.open(folder, name)), TITLES):
        whole = Ragged.open(folder, name)
        part = whole.between(begin, min(begin + TITLES, len(whole)))
        yield np.repeat(np.arange(begin, begin + len(part), dtype=np.int32), part.lengths), np.asarray(part.values)


def write_dropped(corpus: Path, dropped: Sequence[tuple[str, str, int]]) -> None:
    """Writes dropped_categories.parquet: category, reason, titles; most titles first."""
    columns = list(zip(*dropped, strict=True)) or [(), (), ()]
    table = pa.table({name: pa.array(column, kind) for name, column, kind in zip(("category", "reason", "titles"), columns, (pa.string(), pa.string(), pa.int64()), strict=True)})
    pq.write_table(table, corpus / "dropped_categories.parquet", compression="zstd")
