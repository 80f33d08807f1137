"""Writes and reads Layout artifacts: the positions of titles on the map, and why neighbours are similar.

Computing a Layout takes most of the time of the map. A Layout does not depend on clusters or scores, so it is
computed in parallel to the stages cluster and evaluate, for a large guide in another process (tasks/pool.py).
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array
from storage.formats.corpus import open_corpus
from storage.shapes import Bool, Float32, Int
from tasks.encoder.title_encoder import TitleEncoder
from tasks.publish.map.layout import MAX_LINKS, compute_positions, principal_plane
from tasks.publish.map.reasons import Reasons, find_reasons

POSITIONS_FILE = "places.parquet"  # file with the positions, from which the next layout starts
MAX_EXPLAINED = 100_000  # maximum number of titles of a map with reasons, which take 7 KB per title
TEXT_COLUMNS = ["raw_title", "context"]  # columns of titles.parquet from which reasons are computed
REASON_ARRAYS = ("left", "right", "share")  # array fields of Reasons, which are stored in NAME.npy


@dataclass(frozen=True)
class MapTitles:
    """Titles on the map with their positions and nearest titles. Arrays have one row per title on the map."""

    corpus_rows: Int[np.ndarray, " titles"]  # row of each title in the corpus
    xy: Float32[np.ndarray, "titles 2"]  # positions, within [-1, 1]
    neighbours: Int[np.ndarray, "titles k"]  # map rows of the nearest titles, nearest first, padded with -1
    cosines: Float32[np.ndarray, "titles k"]  # cosine similarities of ``neighbours``
    is_new: Bool[np.ndarray, " titles"] | None  # not on the previous map; None without a previous map
    reasons: Reasons | None  # why neighbours are similar; None for more than MAX_EXPLAINED titles


def write_layout(
    *,
    corpus: Path,
    encoder: Path,
    vectors: Path,
    nearest: Path,
    neighbours: int,
    seed: int,
    previous: Path | None,
    folder: Path,
) -> int:
    """Computes a layout of the map and writes the files of a Layout artifact.

    Args:
        corpus: Corpus folder.
        encoder: Folder of the title encoder.
        vectors: Vectors folder.
        nearest: NearestTitles folder.
        neighbours: Number of neighbours per title whose similarity with the title is explained.
        seed: Seed of the layout.
        previous: Folder of the previous Layout, whose positions are the start; None if there is none.
        folder: Folder for the files.

    Returns:
        The number of titles on the map.
    """
    titles = pq.read_table(corpus / "titles.parquet", columns=["show_key", "split"])
    title_vectors = np.asarray(open_array(vectors, "full"))
    splits = np.array(titles["split"].to_pylist())
    rows = np.flatnonzero((splits != "placeholder") & title_vectors.any(axis=1))
    shows = titles["show_key"].take(pa.array(rows)).combine_chunks()
    start_positions = None if previous is None else _previous_positions(previous, shows.to_pylist())
    map_rows = _map_rows(rows, len(splits))
    # The links are those of the stage cluster, so that clusters form groups on the map.
    graph, cosines = (open_array(nearest, name)[rows, :MAX_LINKS] for name in ("graph", "graph_cosines"))
    with ThreadPoolExecutor(1) as pool:  # the loops of the layout release the global interpreter lock
        layout = pool.submit(
            compute_positions,
            principal_plane(title_vectors, rows),
            map_rows[graph],
            cosines,
            seed=seed,
            previous=start_positions,
        )
        if len(rows) <= MAX_EXPLAINED:
            map_neighbours = map_rows[open_array(nearest, "neighbours")[rows, :neighbours]]
            reasons = _explain_neighbours(corpus, TitleEncoder.open(encoder), rows, map_neighbours)
            for name in REASON_ARRAYS:
                np.save(folder / f"{name}.npy", getattr(reasons, name))
            pq.write_table(pa.table({"words": reasons.words}), folder / "words.parquet")
        positions = layout.result()
    x, y = positions.T
    columns = {"title_id": rows.astype(np.int32), "show_key": shows, "x": x, "y": y}
    if start_positions is not None:
        columns["fresh"] = np.isnan(start_positions[:, 0])
    pq.write_table(pa.table(columns), folder / POSITIONS_FILE)
    return len(rows)


def _explain_neighbours(
    corpus: Path, encoder: TitleEncoder, rows: np.ndarray, neighbours: np.ndarray
) -> Reasons:
    """Explains why the titles on the map, which are ``rows`` of the Corpus, are similar to ``neighbours``."""
    files, table = open_corpus(corpus), pq.read_table(corpus / "titles.parquet", columns=TEXT_COLUMNS)
    raw_titles, contexts = (column.to_pylist() for column in table.take(pa.array(rows)).columns)
    return find_reasons(
        encoder,
        raw_titles,
        neighbours,
        contexts=contexts,
        features=encoder.bag.sentence_features(files.sentences[rows], files.descriptions[rows]),
        token_ids=files.complete_tokens(rows),
    )


def read_map_titles(layout: Path, nearest: Path, neighbours: int) -> MapTitles:
    """Reads the titles on the map from a Layout folder, and their nearest titles from a NearestTitles folder.

    Args:
        layout: Layout folder.
        nearest: NearestTitles folder.
        neighbours: Number of nearest titles to read per title.
    """
    table = pq.read_table(layout / POSITIONS_FILE)
    corpus_rows = table["title_id"].to_numpy()
    nearest_rows, reasons = open_array(nearest, "neighbours"), None
    if (layout / "words.parquet").exists():
        words = pq.read_table(layout / "words.parquet")["words"].to_pylist()
        reasons = Reasons(words, **{name: np.load(layout / f"{name}.npy") for name in REASON_ARRAYS})
    return MapTitles(
        corpus_rows=corpus_rows,
        xy=np.column_stack([table["x"], table["y"]]),
        neighbours=_map_rows(corpus_rows, len(nearest_rows))[nearest_rows[corpus_rows, :neighbours]],
        cosines=np.asarray(open_array(nearest, "similarities"))[corpus_rows, :neighbours],
        is_new=table["fresh"].to_numpy() if "fresh" in table.column_names else None,
        reasons=reasons,
    )


def _map_rows(corpus_rows: np.ndarray, title_count: int) -> np.ndarray:
    """Returns the row on the map of each title of the corpus, int32 (titles + 1,); -1 if not on the map.

    The additional last entry is -1, so that the index -1, which means no neighbour, gives -1.
    """
    map_rows = np.full(title_count + 1, -1, dtype=np.int32)
    map_rows[corpus_rows] = np.arange(len(corpus_rows))
    return map_rows


def _previous_positions(previous: Path, shows: list[str]) -> np.ndarray:
    """Returns the position of each show in the previous Layout, float64 (shows, 2); NaN for new shows."""
    table = pq.read_table(previous / POSITIONS_FILE, columns=["show_key", "x", "y"]).to_pydict()
    positions = dict(zip(table["show_key"], zip(table["x"], table["y"], strict=True), strict=True))
    return np.array([positions.get(show, (np.nan, np.nan)) for show in shows]).reshape(-1, 2)
