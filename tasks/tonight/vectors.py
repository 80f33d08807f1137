"""Vectors of the titles that a list needs: of liked ones and of those that are coming.

The champion's folder has similarity vectors of the guide's titles. What it lacks (a film of a media library,
a title that is new tonight) is embedded from its words. That imports PyTorch, so it is done once: those
vectors are kept in ``unlisted-DIGEST.parquet`` of the home, for as long as that champion serves. The file
names titles that somebody liked. So it is written only if the likes are still those that the list was made
of: otherwise a list could bring back what ``guidespace forget`` has removed meanwhile.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.arrays import Ragged
from storage.atomic import replaced_file
from storage.catalogue.likes import unchanged_likes
from storage.formats.model import open_similarity
from tasks.recommend import Titles

KEPT = "unlisted-{}.parquet"


def open_titles(
    folder: Path, digest: str, home: Path, wanted: Mapping[str, str], opinions: pa.Table
) -> Titles:
    """What is known of some titles (show key to raw title), row i of it being the i-th of them.

    Args:
        folder: The champion's Model folder.
        digest: Of the champion.
        home: Where vectors of titles that the model lacks are kept.
        wanted: Titles without repeats.
        opinions: Of ``read_likes``, for which they are wanted.
    """
    file = pq.ParquetFile(folder / "titles.parquet")  # read_table imports pyarrow.dataset
    found = pc.index_in(_strings(list(wanted)), value_set=file.read(["show_key"])["show_key"])  # pyright: ignore[reportAttributeAccessIssue]
    rows = np.array([-1 if row is None else row for row in found.to_pylist()], dtype=np.int64)
    known = np.flatnonzero(rows >= 0)
    table = open_similarity(folder)
    vectors = np.zeros((len(wanted), table.shape[1]), dtype=np.float32)
    vectors[known] = table[rows[known]]
    airings, channels = np.zeros(len(wanted), dtype=np.int64), [[] for _ in wanted]
    about = file.read(["airings", "channels"]).take(found.drop_null())
    if "airings" in about.column_names:  # an older version wrote none
        airings[known] = about["airings"].to_pylist()
    names: dict[str, int] = {}
    for place, own in zip(known.tolist(), about["channels"].to_pylist(), strict=True):
        channels[place] = [names.setdefault(channel, len(names)) for channel in own]
    if lacking := {key: title for key, title, row in zip(wanted, wanted.values(), rows) if row < 0}:
        vectors[rows < 0] = _unlisted(folder, home / KEPT.format(digest[:16]), lacking, opinions)
    return Titles(vectors, airings, Ragged.from_rows(channels))


def forget_unlisted(home: Path) -> None:
    """Removes the kept vectors, and what killed processes left of them."""
    for file in home.glob(f"{KEPT.format('*')}*"):
        file.unlink(missing_ok=True)


def _strings(texts: Sequence[str]) -> pa.Array:
    """An array of texts; pa.array would import pandas (so do a table's to_numpy, pa.scalar and
    DuckDB's parameters), a fifth of the time that a list takes.
    """
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def _unlisted(folder: Path, file: Path, lacking: Mapping[str, str], opinions: pa.Table) -> np.ndarray:
    vectors = _read_kept(file)
    if new := {key: title for key, title in lacking.items() if key not in vectors}:
        from tasks.search.query import Query
        from tasks.search.search import TitleSearch  # imports PyTorch

        search = TitleSearch.open(folder)
        queries = [search.look_up(Query(title)) for title in new.values()]
        vectors |= zip(new, search.embed(queries), strict=True)
        with unchanged_likes(file.parent, opinions) as unchanged:
            if unchanged:
                _write_kept(file, _read_kept(file) | {key: vectors[key] for key in lacking})
    return np.array([vectors[key] for key in lacking])


def _read_kept(file: Path) -> dict[str, np.ndarray]:
    if not file.exists():
        return {}
    table = pq.ParquetFile(file).read()
    return dict(zip(table["show_key"].to_pylist(), np.array(table["vector"].to_pylist(), np.float32)))


def _write_kept(file: Path, vectors: Mapping[str, np.ndarray]) -> None:
    forget_unlisted(file.parent)  # those of another champion, too
    columns = {"show_key": list(vectors), "vector": [vector.tolist() for vector in vectors.values()]}
    with replaced_file(file, durable=False) as new:
        pq.write_table(pa.table(columns), new)
