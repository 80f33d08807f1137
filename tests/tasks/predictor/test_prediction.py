"""The predictor: score of vote and linear part, names of a vocabulary, models without a linear part."""

import shutil
from pathlib import Path

import numpy as np

from storage.arrays import Ragged
from tasks.enrich.explain import decide
from tasks.enrich.model import CategoryModel
from tasks.predictor.prediction import VOTE_WEIGHT, predict_top, support_of, support_of_names

LABELS = Ragged.from_rows([[0], [0, 1], [1], []])
NEIGHBOURS = np.array([[0, 1], [2, -1], [-1, -1], [3, 3]])
COSINES = np.array([[0.8, 0.6], [0.5, 0], [0, 0], [0.9, 0.9]], dtype=np.float32)


def test_the_score_adds_vote_and_support() -> None:
    support = np.array([[0.1, 0.9], [0.2, 0.3], [0.9, 0.1], [0.9, 0.1]])
    top, scores = predict_top(NEIGHBOURS, COSINES, LABELS, 2, support)
    # votes of title 0: .7 and .3; of title 1: 0 and .25; the other titles have no votes
    assert top.tolist() == [1, 1, -1, -1]
    expected = (VOTE_WEIGHT * np.array([0.3, 0.25]) + [0.9, 0.3]) / (VOTE_WEIGHT + 1)
    np.testing.assert_allclose(scores, [*expected, 0, 0], atol=1e-6)


def test_without_a_linear_part_the_majority_of_the_neighbours_decides() -> None:
    top, scores = predict_top(NEIGHBOURS, COSINES, LABELS, 2)
    assert top.tolist() == [0, 1, -1, -1]
    np.testing.assert_allclose(scores, [0.7, 0.25, 0, 0], atol=1e-6)


def test_a_name_has_the_highest_support_of_its_labels() -> None:
    names = support_of_names(np.array([[0.2, 0.7, 0.4]]), np.array([0, 0, -1]), 2)
    np.testing.assert_allclose(names, [[0.7, 0]])


def test_support_is_between_0_and_1_for_any_margin() -> None:
    assert support_of(np.array([-np.inf, 0, np.inf])).tolist() == [0, 0.5, 1]


def test_a_model_of_an_older_version_predicts_by_the_vote(toy_model: Path, tmp_path: Path) -> None:
    old = tmp_path / "model"
    shutil.copytree(toy_model, old)
    (old / "linear.safetensors").unlink()
    (old / "votes_support.npy").unlink()
    for file in old.glob("channel_votes*"):
        file.unlink()
    title = CategoryModel(old).titles[0]
    new_decision, old_decision = decide(CategoryModel(toy_model), title), decide(CategoryModel(old), title)
    assert old_decision.voters == new_decision.voters
    assert all(candidate.linear is None for candidate in old_decision.candidates)
    first = new_decision.candidates[0]
    assert first.linear is not None and first.category == new_decision.predicted
    assert abs(first.score - (VOTE_WEIGHT * first.vote + first.linear) / (VOTE_WEIGHT + 1)) < 2e-4
