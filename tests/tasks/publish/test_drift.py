"""How far two nights are from each other, on worlds that a person can check."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import jensenshannon

from tasks.publish.nights.drift import divergence, lacking, measure_drift, stayed


def unit(rng, count, dim=16):
    vectors = rng.standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def model(folder, titles, vectors, words):
    """A Model folder of (raw title, labels) with these counts of words."""
    folder.mkdir()
    table = {"raw_title": [title for title, _ in titles], "labels": [labels for _, labels in titles]}
    pq.write_table(pa.table(table), folder / "titles.parquet")
    tokens = {"kind": ["word"] * len(words) + ["ngram"], "token": [*words, "xyz"]}
    pq.write_table(pa.table(tokens | {"term_frequency": [*words.values(), 1000]}), folder / "tokens.parquet")
    np.save(folder / "similarity.npy", vectors)
    return folder


def test_divergence_is_scipys():
    one, other = {"a": 3, "b": 1}, {"b": 2, "c": 5}
    expected = jensenshannon([3 / 4, 1 / 4, 0], [0, 2 / 7, 5 / 7], base=2) ** 2
    assert divergence(one, other) == pytest.approx(expected) == divergence(other, one)
    assert divergence(one, {name: 7 * count for name, count in one.items()}) == pytest.approx(0)
    assert divergence(one, {"z": 1}) == pytest.approx(1) and divergence(one, {}) == 0


def test_lacking_counts_occurrences():
    assert lacking({"a": 3, "b": 1}, {"b": 9}) == 0.75 and lacking({}, {"a": 1}) == 0


def test_all_neighbours_stay_in_a_space_that_was_turned_and_none_in_another():
    rng = np.random.default_rng(0)
    vectors = unit(rng, 300)
    turn = np.linalg.qr(rng.standard_normal((16, 16)))[0].astype(np.float32)
    assert stayed(vectors, vectors @ turn) > 0.995
    assert stayed(vectors, unit(rng, 300)) == pytest.approx(10 / 299, abs=0.02)
    assert stayed(vectors, np.zeros_like(vectors)) == 0 and stayed(np.zeros_like(vectors), vectors) == 0


def test_what_is_new_in_the_guide_displaces_no_neighbour(tmp_path):
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


def test_a_model_that_kept_one_kind_of_vectors_is_compared_by_it(tmp_path):
    vectors = unit(np.random.default_rng(3), 12)
    titles = [(f"title {number}", []) for number in range(12)]
    before, now = (model(tmp_path / name, titles, vectors, {"title": 12}) for name in ("before", "now"))
    (before / "similarity.npy").rename(before / "vectors.npy")
    assert measure_drift(before, now)["neighbours_stayed"] == 1


def test_guides_without_a_common_title_have_no_neighbours_to_compare(tmp_path):
    vectors = unit(np.random.default_rng(2), 12)
    before = model(tmp_path / "a", [(f"a{n}", []) for n in range(12)], vectors, {"a": 1})
    now = model(tmp_path / "b", [(f"b{n}", []) for n in range(12)], vectors, {"b": 1})
    found = measure_drift(before, now)
    assert "neighbours_stayed" not in found and found["new_titles"] == 1
    assert found["category_distance"] == 0 and found["vocabulary_distance"] == pytest.approx(1)
