"""Reads and writes the files of a Model folder from which categories and their confidence are predicted.

``votes.parquet`` has one row per held-out title with categories. The column ``title`` is the row of the title
in titles.parquet. ``neighbours`` are the rows of the nearest labelled training titles (by vectors with airing
context; best first; -1: none), and ``cosines`` are the cosine similarities of these neighbours.

``votes_support.npy`` has, for each row of votes.parquet, the support of each label: the margin of the linear
part, mapped to a number from 0 to 1.

``channel_votes.parquet`` and ``channel_votes_support.npy`` have the same content, computed as if no title on
the channels of the held-out title had categories (tasks/scoring/channels.py). Models of older versions have
only votes.parquet.

``spellings.json`` maps each label to the most frequent spelling of the category in guides.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array

RARE_CATEGORIES = "rare_categories"  # column of titles.parquet: categories that are too rare to be labels
VOTES, CHANNEL_VOTES, SPELLINGS = "votes", "channel_votes", "spellings.json"


class Votes(NamedTuple):
    """Nearest labelled training titles of each held-out title (query), for k-NN predictions."""

    titles: np.ndarray  # int64 (queries,), rows of the queries in the Corpus or the Model
    neighbours: np.ndarray  # int64 (queries, k), rows of training titles, nearest first; -1: none
    cosines: np.ndarray  # float32 (queries, k), cosine similarities of ``neighbours``
    # (queries, labels), support of each label by the linear part; None in models of older versions
    support: np.ndarray | None = None

    def where(self, mask: np.ndarray) -> "Votes":
        """Returns the Votes of the queries for which ``mask``, bool (queries,), is True."""
        support = None if self.support is None else self.support[mask]
        return Votes(self.titles[mask], self.neighbours[mask], self.cosines[mask], support)


def open_similarity(folder: Path) -> np.ndarray:
    """Opens the similarity vectors of the titles as a memory map, float32 (titles, dim).

    Models of older versions have only one file of vectors, which is opened instead.
    """
    return open_array(folder, "similarity" if (folder / "similarity.npy").exists() else "vectors")


def write_votes(folder: Path, votes: Votes, name: str = VOTES) -> None:
    """Writes votes to the files ``name.parquet`` and ``name_support.npy`` in a Model folder."""
    k = votes.neighbours.shape[1]
    list_columns = (
        pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), k)
        for matrix in (votes.neighbours.astype(np.int32), votes.cosines.astype(np.float32))
    )
    columns = [pa.array(votes.titles.astype(np.int32)), *list_columns]
    table = pa.table(dict(zip(("title", "neighbours", "cosines"), columns, strict=True)))
    pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    if votes.support is not None:
        np.save(folder / f"{name}_support.npy", votes.support.astype(np.float16))


def read_votes(folder: Path, name: str = VOTES) -> Votes | None:
    """Reads the votes that ``write_votes`` wrote into a Model folder.

    Returns None if ``name.parquet`` is missing, because an older version has written the model.
    """
    if not (folder / f"{name}.parquet").exists():
        return None
    table = pq.read_table(folder / f"{name}.parquet").combine_chunks()
    titles = table["title"].to_numpy().astype(np.int64)
    neighbours, cosines = (
        table[column].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(titles), -1)
        for column in ("neighbours", "cosines")
    )
    file = f"{name}_support"
    support = open_array(folder, file) if (folder / f"{file}.npy").exists() else None
    return Votes(titles, neighbours.astype(np.int64), cosines, support)


def write_spellings(folder: Path, spellings: Mapping[str, str]) -> None:
    """Writes spellings.json, which maps each label to its most frequent spelling in guides."""
    (folder / SPELLINGS).write_text(json.dumps(spellings, ensure_ascii=False, indent=1), encoding="utf-8")


def read_spellings(folder: Path) -> dict[str, str]:
    """Reads spellings.json, which maps each label to its most frequent spelling in guides."""
    return json.loads((folder / SPELLINGS).read_text(encoding="utf-8"))
