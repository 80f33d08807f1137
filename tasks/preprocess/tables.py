"""Writes the arrays and tables of a Corpus (input of training) from the tables of a Vocabulary."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.arrays import Ragged, array_writer, offsets_of, open_array
from storage.catalogue.connection import temporary_database
from storage.catalogue.titles import Airings
from storage.formats.corpus import TITLES
from storage.formats.vocabulary import dictionary_file, pieces_of, read_piece, read_tokens
from tasks.preprocess.categories import Labels
from tasks.preprocess.frequencies import write_slices
from tasks.preprocess.token_ids import TokenIds
from tasks.text.words import KINDS, WORD

BATCH_TITLES = 50_000  # titles in memory at once


def index_in(texts: pa.Array | pa.ChunkedArray, values: Sequence[str]) -> np.ndarray:
    """Returns the index of each text in ``values``: int8 (texts,)."""
    return pc.index_in(texts, value_set=pa.array(values)).to_numpy().astype(np.int8)  # pyright: ignore[reportAttributeAccessIssue]


def write_tokens(vocabulary: Path, folder: Path) -> int:
    """Writes the kinds, weights and names of all tokens to a Corpus folder. Returns the number of tokens."""
    table = pq.read_table(vocabulary / "tokens.parquet", columns=["kind", "token", "weight"])
    np.save(folder / "kinds.npy", index_in(table["kind"], KINDS))
    np.save(folder / "weights.npy", table["weight"].to_numpy().astype(np.float32))
    pq.write_table(table.select(["kind", "token"]), folder / "token_names.parquet", compression="zstd")
    return len(table)


def write_titles(vocabulary: Path, folder: Path, labels: Labels, airings: Airings) -> int:
    """Writes the token ids and metadata of all titles to a Corpus folder.

    Writes tokens.{offsets,values}.npy, oov.npy, titles.parquet and, for SQL, a copy of variants.parquet.

    Args:
        vocabulary: Folder of a Vocabulary.
        folder: Folder of the Corpus.
        labels: Labels of the titles.
        airings: Airings of the titles.

    Returns:
        Number of token ids of all titles.
    """
    titles, contexts = vocabulary / "titles.parquet", vocabulary / "contexts.parquet"
    dictionary_files = [dictionary_file(vocabulary, piece) for piece in pieces_of(titles)]
    begin, entries = 0, 0
    names, rare_names = (pa.array(values, pa.string()) for values in (labels.names, labels.rare_names))
    token_lookup = TokenIds(airings.connection, dictionary_files, contexts, vocabulary / "tokens.parquet")
    with (
        array_writer(folder, "tokens.offsets", np.int64) as add_offsets,
        array_writer(folder, "tokens.values", np.int32) as add_values,
        array_writer(folder, "oov", np.bool_) as add_oov,
        pq.ParquetWriter(folder / "titles.parquet", TITLES, compression="zstd") as writer,
    ):
        add_offsets(np.zeros(1))
        for piece, dictionary in enumerate(dictionary_files):
            is_word = index_in(pq.read_table(dictionary, columns=["kind"])["kind"], KINDS) == WORD
            local_tokens = read_tokens(vocabulary, piece)
            end = begin + len(local_tokens)
            text_token_ids = token_lookup.ids_of_dictionary(piece)[local_tokens.values]
            is_oov = (text_token_ids < 0) & is_word[local_tokens.values]
            oov = np.bincount(local_tokens.row_ids[is_oov], minlength=len(local_tokens)) > 0
            text_tokens = Ragged(local_tokens.offsets, text_token_ids).where(text_token_ids >= 0)
            tokens = text_tokens.append(token_lookup.ids_of_contexts(begin, end))
            add_offsets(tokens.offsets[1:] + entries)
            add_values(tokens.values)
            add_oov(oov)
            title_labels, title_rare = (
                ragged.between(begin, end) for ragged in (labels.title_labels, labels.title_rare)
            )
            columns = [
                *read_piece(titles, piece).columns,
                _read_contexts(contexts, begin, end),
                _make_lists(title_labels.offsets, names.take(pa.array(title_labels.values))),
                _make_lists(title_rare.offsets, rare_names.take(pa.array(title_rare.values))),
                airings.channels(begin, end)["channels"],
                airings.days(begin, end)["days"],
                pa.array(oov),
            ]
            writer.write_table(pa.table(columns, schema=TITLES))
            begin, entries = end, entries + len(tokens.values)
    shutil.copyfile(vocabulary / "variants.parquet", folder / "variants.parquet")
    return entries


def _read_contexts(file: Path, begin: int, end: int) -> pa.ListArray:
    in_range = (pc.field("title_id") >= begin) & (pc.field("title_id") < end)
    table = pq.read_table(file, columns=["title_id", "token"], filters=in_range)
    lengths = np.bincount(table["title_id"].to_numpy() - begin, minlength=end - begin)
    return _make_lists(offsets_of(lengths), table["token"].combine_chunks())


def _make_lists(offsets: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(offsets.astype(np.int32), values)


def write_frequencies(corpus: Path, guide: Path, vocabulary: Path) -> int:
    """Counts words per language, category and week, and writes frequencies.parquet to a Corpus folder.

    The arrays of the Corpus must have been written before. Returns the number of rows of frequencies.parquet.
    """
    kinds = open_array(corpus, "kinds")
    ids = pa.array(np.arange(len(kinds), dtype=np.int32), mask=np.asarray(kinds != WORD))
    names = pa.array(json.loads((corpus / "label_names.json").read_text(encoding="utf-8")), pa.string())
    with (
        tempfile.TemporaryDirectory(dir=corpus, prefix="work-") as name,
        temporary_database(Path(name)) as connection,
    ):
        words, labels = Path(name) / "words.parquet", Path(name) / "labels.parquet"
        _write_entries(corpus, "tokens", ids, "token_id", words)
        _write_entries(corpus, "labels", names, "label", labels)
        return write_slices(connection, guide, vocabulary, words, labels, corpus / "frequencies.parquet")


def _write_entries(corpus: Path, name: str, lookup: pa.Array, column: str, path: Path) -> None:
    """Writes the values of a ragged array of a Corpus to a Parquet file, one row per value.

    The columns are title_id and ``column``, which contains ``lookup[value]``. Rows in which ``column`` is
    null are omitted.
    """
    schema = pa.schema([("title_id", pa.int32()), (column, lookup.type)])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for begin in range(0, len(Ragged.open(corpus, name)), BATCH_TITLES):
            # A new memory map per batch limits the resident memory.
            batch = Ragged.open(corpus, name).between(begin, begin + BATCH_TITLES)
            titles = pa.array(begin + batch.row_ids, pa.int32())
            values = lookup.take(pa.array(np.asarray(batch.values)))
            writer.write_table(pa.table([titles, values], schema=schema).drop_null())
