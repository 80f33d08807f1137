"""Loads the vectors of upcoming and liked titles, which recommenders compare.

The folder of the served model (champion) contains the vectors of the titles of a guide. Other ("unlisted")
titles, such as films of a media library, are embedded from their words. This imports PyTorch, so the vectors
are cached in ``unlisted-DIGEST.parquet`` in the home until the champion changes. The file contains liked
titles. Therefore, it is written only if the likes have not changed since they were read: otherwise, it could
contain titles of a viewer whose data ``guidespace forget`` has removed in the meantime.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.atomic import replaced_file
from storage.catalogue.likes import unchanged_likes
from storage.formats.model import open_similarity
from tasks.recommend import Titles

FILE_NAME = "unlisted-{}.parquet"


def open_titles(
    folder: Path, digest: str, home: Path, titles: Mapping[str, str], opinions: pa.Table
) -> Titles:
    """Loads the vectors and numbers of airings of titles, in the order of ``titles``.

    Args:
        folder: Model folder of the champion.
        digest: Digest of the champion.
        home: Folder of the home, which contains the cached vectors.
        titles: Raw titles by show key (normalized title).
        opinions: Table of likes and dislikes, from ``read_likes``.
    """
    file = pq.ParquetFile(folder / "titles.parquet")  # read_table imports pyarrow.dataset
    indices = pc.index_in(_string_array(list(titles)), value_set=file.read(["show_key"])["show_key"])  # pyright: ignore[reportAttributeAccessIssue]
    rows = np.array([-1 if row is None else row for row in indices.to_pylist()], dtype=np.int64)
    listed_rows = np.flatnonzero(rows >= 0)
    table = open_similarity(folder)
    vectors = np.zeros((len(titles), table.shape[1]), dtype=np.float32)
    vectors[listed_rows] = table[rows[listed_rows]]
    airings = np.zeros(len(titles), dtype=np.int64)
    title_data = file.read(["airings"]).take(indices.drop_null())
    if "airings" in title_data.column_names:  # missing in models of older versions
        airings[listed_rows] = title_data["airings"].to_pylist()
    if unlisted := {key: title for key, title, row in zip(titles, titles.values(), rows) if row < 0}:
        vectors[rows < 0] = _unlisted_vectors(
            folder, home / FILE_NAME.format(digest[:16]), unlisted, opinions
        )
    return Titles(vectors, airings)


def forget_unlisted(home: Path) -> None:
    """Removes the cached vectors of unlisted titles, including temporary files of killed processes."""
    for file in home.glob(f"{FILE_NAME.format('*')}*"):
        file.unlink(missing_ok=True)


def _string_array(texts: Sequence[str]) -> pa.Array:
    """Creates an Arrow array of strings without importing pandas, which takes 0.14 s.

    pa.array, pa.scalar, ``to_numpy`` of a table, and parameters of DuckDB queries would import pandas.
    """
    values = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(values)))


def _unlisted_vectors(
    folder: Path, file: Path, unlisted: Mapping[str, str], opinions: pa.Table
) -> np.ndarray:
    """Returns the vectors of titles that the model lacks, from the cache ``file`` or by embedding them."""
    vectors = _read_vectors(file)
    if new_titles := {key: title for key, title in unlisted.items() if key not in vectors}:
        from tasks.search.query import Query
        from tasks.search.search import TitleSearch  # imports PyTorch

        search = TitleSearch.open(folder)
        queries = [search.look_up(Query(title)) for title in new_titles.values()]
        vectors |= zip(new_titles, search.embed(queries), strict=True)
        with unchanged_likes(file.parent, opinions) as are_unchanged:
            if are_unchanged:
                _write_vectors(file, _read_vectors(file) | {key: vectors[key] for key in unlisted})
    return np.array([vectors[key] for key in unlisted])


def _read_vectors(file: Path) -> dict[str, np.ndarray]:
    """Reads the cached vectors by show key; returns {} if the file does not exist."""
    if not file.exists():
        return {}
    table = pq.ParquetFile(file).read()
    return dict(zip(table["show_key"].to_pylist(), np.array(table["vector"].to_pylist(), np.float32)))


def _write_vectors(file: Path, vectors: Mapping[str, np.ndarray]) -> None:
    """Writes vectors to the cache ``file``; removes all other caches in its folder."""
    forget_unlisted(file.parent)  # also removes the caches of previous champions
    columns = {"show_key": list(vectors), "vector": [vector.tolist() for vector in vectors.values()]}
    with replaced_file(file, durable=False) as new_file:
        pq.write_table(pa.table(columns), new_file)
