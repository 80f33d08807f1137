"""Layouts in a helper process and from one night to the next."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Corpus, Layout, NearestTitles, TitleEncoderFiles, Vectors
from tasks.pool import MAX_HELPER_TITLES, MIN_HELPER_TITLES, helper_process
from tasks.publish.map import places
from tasks.publish.map.places import POSITIONS_FILE, read_map_titles

Inputs = tuple[Path, Corpus, TitleEncoderFiles, Vectors, NearestTitles]


@pytest.fixture(scope="module")
def inputs(learnt) -> Inputs:
    from prefect.logging import disable_run_logger

    from tasks.embed.task import embed
    from tasks.neighbours.index import AUTO
    from tasks.neighbours.task import find_nearest

    home, _, _, corpus, _, encoder = learnt
    with disable_run_logger():
        vectors = embed.fn(str(home), corpus, encoder)
        nearest = find_nearest.fn(str(home), corpus, vectors, 12, AUTO)
    return home, corpus, encoder, vectors, nearest


def compute_positions(inputs: Inputs, without_run, seed: int) -> Layout:
    """Runs the stage layout with five neighbours per title and no previous layout."""
    from tasks.publish.inputs import LayoutInputs
    from tasks.publish.task import compute_layout

    home, corpus, encoder, vectors, nearest = inputs
    layout_inputs = LayoutInputs(
        corpus=corpus, encoder=encoder, vectors=vectors, nearest=nearest, neighbours=5, seed=seed
    )
    return without_run(compute_layout, str(home), layout_inputs, None)


def write_layout(folders: list[Path], **options) -> int:
    names = ("corpus", "encoder", "vectors", "nearest")
    return places.write_layout(**dict(zip(names, folders, strict=True)), neighbours=5, **options)


@pytest.mark.slow
@pytest.mark.parametrize("titles", [MIN_HELPER_TITLES + 1, MAX_HELPER_TITLES + 1])
def test_another_process_gives_the_same_layout(inputs: Inputs, without_run, titles: int):
    home, corpus = inputs[:2]
    assert corpus.counts["titles"] <= MIN_HELPER_TITLES
    in_process = compute_positions(inputs, without_run, seed=1)
    many = replace(corpus, counts={"titles": titles})  # counts are not part of the cache key: another seed
    with helper_process():
        in_helper = compute_positions((home, many, *inputs[2:]), without_run, seed=titles)
    again = compute_positions(inputs, without_run, seed=titles)
    assert in_helper.digest == again.digest != in_process.digest and in_helper.counts == in_process.counts


def test_the_next_layout_starts_from_previous_positions(inputs: Inputs, without_run, tmp_path: Path):
    home, corpus, *rest = inputs
    first = compute_positions(inputs, without_run, seed=3)
    before = pq.read_table(home / first.path / POSITIONS_FILE)
    assert "fresh" not in before.column_names
    (tmp_path / "before").mkdir()
    pq.write_table(before.slice(10), tmp_path / "before" / POSITIONS_FILE)
    folders = [home / artifact.path for artifact in (corpus, *rest)]
    count = write_layout(folders, seed=4, previous=tmp_path / "before", folder=tmp_path)
    second = read_map_titles(tmp_path, home / rest[-1].path, 5)
    assert count == len(second.corpus_rows) == len(before)
    assert second.is_new is not None and np.flatnonzero(second.is_new).tolist() == list(range(10))
    moved = np.abs(second.xy[10:] - np.column_stack([before["x"], before["y"]])[10:])
    assert np.median(moved) < 0.1
    np.testing.assert_array_equal(
        second.neighbours, read_map_titles(home / first.path, folders[-1], 5).neighbours
    )


def test_placeholders_are_omitted_and_large_maps_have_no_reasons(
    inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folders = [inputs[0] / artifact.path for artifact in inputs[1:]]
    for folder in (tmp_path / "few", tmp_path / "many"):
        folder.mkdir()
        write_layout(folders, seed=0, previous=None, folder=folder)
        monkeypatch.setattr(places, "MAX_EXPLAINED", 100)
    few, many = (read_map_titles(tmp_path / name, folders[-1], 5) for name in ("few", "many"))
    split = pq.read_table(folders[0] / "titles.parquet", columns=["split"])["split"].to_pylist()
    has_vector = np.load(folders[2] / "full.npy").any(axis=1)
    shown = [row for row, name in enumerate(split) if name != "placeholder" and has_vector[row]]
    assert few.corpus_rows.tolist() == many.corpus_rows.tolist() == shown and few.is_new is None
    np.testing.assert_array_equal(few.xy, many.xy)
    assert few.reasons is not None and many.reasons is None
    assert len(few.reasons.words) == len(shown) and few.reasons.share.shape == (len(shown), 5, 4)
    assert few.reasons.share.max() > 20  # shared word
