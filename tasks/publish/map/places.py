"""What a map needs of titles before their clusters are known: where they stand, and why neighbours are near.

Both take longer than all else of the map, and wait for nothing that cluster and evaluate make: those of a
large guide are computed by the process beside (tasks/pool.py).
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

PLACES = "places.parquet"  # also where the next layout starts
MOST_EXPLAINED = 100_000  # titles of a map that tells why they are near: parts of one take 7 KB
REASONS = ("left", "right", "share")


@dataclass(frozen=True)
class Places:
    """The titles of a map; row i of everything but ``shown`` is its title i."""

    shown: Int[np.ndarray, " titles"]  # their rows in the corpus: no placeholders, and none without a vector
    xy: Float32[np.ndarray, "titles 2"]
    neighbours: Int[np.ndarray, "titles k"]  # as rows of the map, nearest first, -1 where there is none
    cosines: Float32[np.ndarray, "titles k"]
    fresh: Bool[np.ndarray, " titles"] | None  # which the previous layout did not have; None: there was none
    reasons: Reasons | None  # None: of more titles than MOST_EXPLAINED


def write_layout(
    corpus: Path,
    encoder: Path,
    vectors: Path,
    nearest: Path,
    neighbours: int,
    seed: int,
    before: Path | None,
    folder: Path,
) -> int:
    """Fills the folder of a Layout, from those of what it is made of and of the previous one; its titles."""
    titles = pq.read_table(corpus / "titles.parquet", columns=["show_key", "split"])
    matrix = np.asarray(open_array(vectors, "full"))
    split = np.array(titles["split"].to_pylist())
    shown = np.flatnonzero((split != "placeholder") & matrix.any(axis=1))
    shows, stood = titles["show_key"].take(pa.array(shown)).combine_chunks(), _places_before(before)
    old = None
    if stood is not None:
        old = np.array([stood.get(show, (np.nan, np.nan)) for show in shows.to_pylist()]).reshape(-1, 2)
    row = _rows(shown, len(split))
    graph, cosines = (open_array(nearest, name)[shown, :NEAREST] for name in ("graph", "graph_cosines"))
    linked = row[graph], cosines  # those of the clusters, which then stand together
    with ThreadPoolExecutor(1) as pool:  # the layout's loops release the interpreter, which the reasons hold
        places = pool.submit(lay_out, principal_plane(matrix, shown), *linked, seed=seed, before=old)
        if len(shown) <= MOST_EXPLAINED:
            learned, opened = open_corpus(corpus), TitleEncoder.open(encoder)
            dense = opened.bag.dense(learned.sentences[shown], learned.descriptions[shown])
            texts = pq.read_table(corpus / "titles.parquet", columns=["raw_title", "context"])
            raw, contexts = (own.to_pylist() for own in texts.take(pa.array(shown)).columns)
            near = row[open_array(nearest, "neighbours")[shown, :neighbours]]
            reasons = find_reasons(opened, raw, near, contexts, dense, learned.complete_tokens(shown))
            for name in REASONS:
                np.save(folder / f"{name}.npy", getattr(reasons, name))
            pq.write_table(pa.table({"words": reasons.words}), folder / "words.parquet")
        xy = places.result()
    table = {"title_id": shown.astype(np.int32), "show_key": shows, "x": xy[:, 0], "y": xy[:, 1]}
    if old is not None:
        table["fresh"] = np.isnan(old[:, 0])
    pq.write_table(pa.table(table), folder / PLACES)
    return len(shown)


def read_places(layout: Path, nearest: Path, neighbours: int) -> Places:
    """The titles of a map, with so many neighbours each."""
    table = pq.read_table(layout / PLACES)
    shown = table["title_id"].to_numpy()
    near, reasons = open_array(nearest, "neighbours"), None
    if (layout / "words.parquet").exists():
        words = pq.read_table(layout / "words.parquet")["words"].to_pylist()
        reasons = Reasons(words, *(np.load(layout / f"{name}.npy") for name in REASONS))
    return Places(
        shown=shown,
        xy=np.column_stack([table["x"], table["y"]]),
        neighbours=_rows(shown, len(near))[near[shown, :neighbours]],
        cosines=np.asarray(open_array(nearest, "similarities"))[shown, :neighbours],
        fresh=table["fresh"].to_numpy() if "fresh" in table.column_names else None,
        reasons=reasons,
    )


def _rows(shown: np.ndarray, titles: int) -> np.ndarray:
    """The map's row of each title of the corpus, -1 of one that it lacks; at place -1, too."""
    rows = np.full(titles + 1, -1, dtype=np.int32)
    rows[shown] = np.arange(len(shown))
    return rows


def _places_before(before: Path | None) -> dict[str, tuple[float, float]] | None:
    if before is None:
        return None
    table = pq.read_table(before / PLACES, columns=["show_key", "x", "y"]).to_pydict()
    return dict(zip(table["show_key"], zip(table["x"], table["y"], strict=True), strict=True))
