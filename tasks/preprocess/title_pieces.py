"""The tokenize stage's pieces as token ids, one of them in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import ArrayWriter, Ragged
from storage.catalogue.titles import Airings
from storage.catalogue.token_ids import TokenIds, open_token_ids
from tasks.preprocess.categories import Labels
from tasks.tokenize.pieces import dictionary_file, pieces_of, read_piece, tokens_file
from tasks.tokenize.words import KINDS, WORD


class TitlePiece(NamedTuple):
    """Token ids of a run of titles.

    Attributes:
        tokens: Ids of the known tokens of each, its context's behind its text's.
        oov: bool, one a title: holds a word that is not known.
    """

    tokens: Ragged
    oov: np.ndarray


def title_pieces(folder: Path, ids: TokenIds) -> Iterator[TitlePiece]:
    """What the tokenize stage left piece by piece, as token ids; one piece is in memory at a time.

    Args:
        folder: Of a Vocabulary.
        ids: Of its tokens.
    """
    begin = 0
    for piece in pieces_of(folder / "titles.parquet"):
        column = pq.read_table(tokens_file(folder, piece))["tokens"].combine_chunks()
        is_word = np.array([kind == KINDS[WORD] for kind in pq.read_table(dictionary_file(folder, piece), columns=["kind"])["kind"].to_pylist()], dtype=bool)
        own, lengths = column.values.to_numpy(), np.diff(column.offsets.to_numpy())
        titles = np.repeat(np.arange(len(lengths)), lengths)
        found = ids.of_dictionary(piece)[own]
        oov = np.bincount(titles[(found < 0) & is_word[own]], minlength=len(lengths)) > 0
        known = np.flatnonzero(found >= 0)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(titles[known], minlength=len(lengths)))])
        contexts = ids.of_contexts(begin, begin + len(lengths))
        begin += len(lengths)
        yield TitlePiece(Ragged(offsets, found[known]).append(contexts), oov)


def write_titles(vocabulary: Path, folder: Path, labels: Labels, airings: Airings) -> int:
    """Writes what has a row a title and is long: tokens.{offsets,values}.npy, oov.npy and titles.parquet.

    Args:
        vocabulary: Folder of a Vocabulary.
        folder: Of the Corpus.
        labels: Of every title.
        airings: Of the titles: their channels and days.

    Returns:
        Number of token ids.
    """
    names, contexts = pa.array(labels.names, pa.string()), vocabulary / "contexts.parquet"
    titles = vocabulary / "titles.parquet"
    dictionaries = [dictionary_file(vocabulary, piece) for piece in pieces_of(titles)]
    lists = pa.list_(pa.string())
    schema = pa.schema([*pq.read_schema(titles), ("context", lists), ("labels", lists), ("channels", lists), ("days", lists), ("oov", pa.bool_())])
    begin, entries = 0, 0
    with ExitStack() as stack:
        ids = stack.enter_context(open_token_ids(dictionaries, contexts, vocabulary / "tokens.parquet", folder))
        offsets, values, oov = (
            stack.enter_context(ArrayWriter(folder, name, dtype)) for name, dtype in (("tokens.offsets", np.int64), ("tokens.values", np.int32), ("oov", np.bool_))
        )
        writer = stack.enter_context(pq.ParquetWriter(folder / "titles.parquet", schema, compression="zstd"))
        offsets.append(np.zeros(1))
        for number, piece in enumerate(title_pieces(vocabulary, ids)):
            end = begin + len(piece.oov)
            offsets.append(piece.tokens.offsets[1:] + entries)
            values.append(piece.tokens.values)
            oov.append(piece.oov)
            own = labels.of_title.between(begin, end)
            aired = airings.channels(begin, end)["channels"], airings.days(begin, end)["days"]
            columns = [_contexts(contexts, begin, end), _lists(own.offsets, names.take(pa.array(own.values))), *aired, pa.array(piece.oov)]
            writer.write_table(pa.table([*read_piece(titles, number).columns, *columns], schema=schema))
            begin, entries = end, entries + len(piece.tokens.values)
    return entries


def _contexts(file: Path, begin: int, end: int) -> pa.ListArray:
    """Context tokens of titles begin to end."""
    table = pq.read_table(file, columns=["title_id", "token"], filters=[("title_id", ">=", begin), ("title_id", "<", end)])
    lengths = np.bincount(table["title_id"].to_numpy() - begin, minlength=end - begin)
    return _lists(np.concatenate([[0], np.cumsum(lengths)]), table["token"].combine_chunks())


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(offsets.astype(np.int32), values)
