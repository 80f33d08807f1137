"""Drift between two nights."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import jensenshannon

from tasks.publish.nights.drift import divergence, measure_drift, missing_share, neighbour_overlap


def unit(rng, count, dim=16):
    vectors = rng.standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def model(folder, titles, vectors, words):
    """Creates a Model folder from (raw title, labels) with these counts of words."""
    folder.mkdir()
    table = {"raw_title": [title for title, _ in titles], "labels": [labels for _, labels in titles]}
    pq.write_table(pa.table(table), folder / "titles.parquet")
    tokens = {"kind": ["word"] * len(words) + ["ngram"], "token": [*words, "xyz"]}
    pq.write_table(pa.table(tokens | {"term_frequency": [*words.values(), 1000]}), folder / "tokens.parquet")
    np.save(folder / "similarity.npy", vectors)
    return folder


def test_divergence_matches_scipy():
    left, right = {"a": 3, "b": 1}, {"b": 2, "c": 5}
    expected = jensenshannon([3 / 4, 1 / 4, 0], [0, 2 / 7, 5 / 7], base=2) ** 2
    assert divergence(left, right) == pytest.approx(expected) == divergence(right, left)
    assert divergence(left, {name: 7 * count for name, count in left.items()}) == pytest.approx(0)
    assert divergence(left, {"z": 1}) == pytest.approx(1) and divergence(left, {}) == 0


def test_missing_share_counts_occurrences():
    assert missing_share({"a": 3, "b": 1}, {"b": 9}) == 0.75 and missing_share({}, {"a": 1}) == 0


def test_overlap_is_1_after_a_rotation_and_chance_for_another_space():
    rng = np.random.default_rng(0)
    vectors = unit(rng, 300)
    turn = np.linalg.qr(rng.standard_normal((16, 16)))[0].astype(np.float32)
    assert neighbour_overlap(vectors, vectors @ turn) > 0.995
    assert neighbour_overlap(vectors, unit(rng, 300)) == pytest.approx(10 / 299, abs=0.02)
    zeros = np.zeros_like(vectors)
    assert neighbour_overlap(vectors, zeros) == 0 == neighbour_overlap(zeros, vectors)


def test_new_titles_do_not_displace_neighbours(tmp_path):
    rng = np.random.default_rng(1)
    vectors, crowd = unit(rng, 40), unit(rng, 60)
    old = [(f"title {number}", ["news"]) for number in range(40)]
    new = [(f"new {number}", ["film"]) for number in range(60)]
    before = model(tmp_path / "before", old, vectors, {"title": 40})
    mixed = np.concatenate([crowd, vectors[5:]])
    now = model(tmp_path / "now", [*new, *old[5:]], mixed, {"title": 35, "new": 60})
    found = measure_drift(before, now)
    assert found["neighbours_stayed"] == 1
    assert found["new_titles"] == pytest.approx(60 / 95) and found["gone_titles"] == pytest.approx(5 / 40)
    assert found["new_words"] == pytest.approx(60 / 95) and found["gone_words"] == 0
    assert 0 < found["category_distance"] < 1 and 0 < found["vocabulary_distance"] < 1


def test_models_with_the_old_file_name_of_vectors_are_compared(tmp_path):
    vectors = unit(np.random.default_rng(3), 12)
    titles = [(f"title {number}", []) for number in range(12)]
    before, now = (model(tmp_path / name, titles, vectors, {"title": 12}) for name in ("before", "now"))
    (before / "similarity.npy").rename(before / "vectors.npy")
    assert measure_drift(before, now)["neighbours_stayed"] == 1


def test_guides_without_a_common_title_have_no_overlap(tmp_path):
    vectors = unit(np.random.default_rng(2), 12)
    before = model(tmp_path / "a", [(f"a{n}", []) for n in range(12)], vectors, {"a": 1})
    now = model(tmp_path / "b", [(f"b{n}", []) for n in range(12)], vectors, {"b": 1})
    found = measure_drift(before, now)
    assert "neighbours_stayed" not in found and found["new_titles"] == 1
    assert found["category_distance"] == 0 and found["vocabulary_distance"] == pytest.approx(1)
