"""Positions of titles on the map and reasons of neighbours.

They are the slowest parts of the map and do not depend on clusters or scores, so a Layout is computed in
parallel to these stages, for a large guide in the helper process (tasks/pool.py).
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
from tasks.publish.map.layout import NEAREST, lay_out, principal_plane
from tasks.publish.map.reasons import Reasons, find_reasons

PLACES = "places.parquet"  # file of the positions, from which the next layout starts
MAX_EXPLAINED = 100_000  # maximum titles of a map with reasons; the parts of a title take 7 KB
REASONS = ("left", "right", "share")


@dataclass(frozen=True)
class Places:
    """Titles of the map; row i of each array belongs to title i of the map."""

    shown: Int[np.ndarray, " titles"]  # rows in the corpus, without placeholders and titles without a vector
    xy: Float32[np.ndarray, "titles 2"]
    neighbours: Int[np.ndarray, "titles k"]  # rows of the map, nearest first, padded with -1
    cosines: Float32[np.ndarray, "titles k"]
    fresh: Bool[np.ndarray, " titles"] | None  # titles missing in the previous layout, if there is one
    reasons: Reasons | None  # None for more than MAX_EXPLAINED titles


def write_layout(
    corpus: Path,
    encoder: Path,
    vectors: Path,
    nearest: Path,
    neighbours: int,
    seed: int,
    previous: Path | None,
    folder: Path,
) -> int:
    """Writes the files of a Layout from the folders of its inputs and of the previous Layout.

    Returns:
        The number of titles.
    """
    titles = pq.read_table(corpus / "titles.parquet", columns=["show_key", "split"])
    matrix = np.asarray(open_array(vectors, "full"))
    split = np.array(titles["split"].to_pylist())
    shown = np.flatnonzero((split != "placeholder") & matrix.any(axis=1))
    shows = titles["show_key"].take(pa.array(shown)).combine_chunks()
    start = None if previous is None else _previous_positions(previous, shows.to_pylist())
    row = _map_rows(shown, len(split))
    graph, cosines = (open_array(nearest, name)[shown, :NEAREST] for name in ("graph", "graph_cosines"))
    links = row[graph], cosines  # the same links as for clustering, so clusters form groups on the map
    with ThreadPoolExecutor(1) as pool:  # the loops of the layout release the interpreter lock
        layout = pool.submit(lay_out, principal_plane(matrix, shown), *links, seed=seed, previous=start)
        if len(shown) <= MAX_EXPLAINED:
            corpus_files, title_encoder = open_corpus(corpus), TitleEncoder.open(encoder)
            texts = pq.read_table(corpus / "titles.parquet", columns=["raw_title", "context"])
            raw_titles, contexts = (column.to_pylist() for column in texts.take(pa.array(shown)).columns)
            reasons = find_reasons(
                title_encoder,
                raw_titles,
                row[open_array(nearest, "neighbours")[shown, :neighbours]],
                contexts,
                title_encoder.bag.dense(corpus_files.sentences[shown], corpus_files.descriptions[shown]),
                corpus_files.complete_tokens(shown),
            )
            for name in REASONS:
                np.save(folder / f"{name}.npy", getattr(reasons, name))
            pq.write_table(pa.table({"words": reasons.words}), folder / "words.parquet")
        xy = layout.result()
    table = {"title_id": shown.astype(np.int32), "show_key": shows, "x": xy[:, 0], "y": xy[:, 1]}
    if start is not None:
        table["fresh"] = np.isnan(start[:, 0])
    pq.write_table(pa.table(table), folder / PLACES)
    return len(shown)


def read_places(layout: Path, nearest: Path, neighbours: int) -> Places:
    """Reads the titles of the map with ``neighbours`` neighbours each."""
    table = pq.read_table(layout / PLACES)
    shown = table["title_id"].to_numpy()
    nearest_columns, reasons = open_array(nearest, "neighbours"), None
    if (layout / "words.parquet").exists():
        words = pq.read_table(layout / "words.parquet")["words"].to_pylist()
        reasons = Reasons(words, *(np.load(layout / f"{name}.npy") for name in REASONS))
    return Places(
        shown=shown,
        xy=np.column_stack([table["x"], table["y"]]),
        neighbours=_map_rows(shown, len(nearest_columns))[nearest_columns[shown, :neighbours]],
        cosines=np.asarray(open_array(nearest, "similarities"))[shown, :neighbours],
        fresh=table["fresh"].to_numpy() if "fresh" in table.column_names else None,
        reasons=reasons,
    )


def _map_rows(shown: np.ndarray, titles: int) -> np.ndarray:
    """Returns the row on the map of each title of the corpus, -1 if it is not shown, and -1 at index -1."""
    rows = np.full(titles + 1, -1, dtype=np.int32)
    rows[shown] = np.arange(len(shown))
    return rows


def _previous_positions(previous: Path, shows: list[str]) -> np.ndarray:
    """Returns the positions of shows in the previous layout, float64 (shows, 2), NaN for new ones."""
    table = pq.read_table(previous / PLACES, columns=["show_key", "x", "y"]).to_pydict()
    positions = dict(zip(table["show_key"], zip(table["x"], table["y"], strict=True), strict=True))
    return np.array([positions.get(show, (np.nan, np.nan)) for show in shows]).reshape(-1, 2)
