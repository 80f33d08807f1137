"""Decisions of the gate."""

import numpy as np
import pytest

from storage import arrays
from tasks.evaluate.settings import EvaluateSettings
from tasks.publish.registry.gate import (
    MAX_PROMOTED,
    GateDecision,
    QueryQualities,
    decide_promotion,
    neighbour_count,
    query_quality,
    score_models,
)
from tests import worlds

QUERIES = 400


def qualities(seed: int = 0) -> np.ndarray:
    """Makes the quality of a champion on each query."""
    rng = np.random.default_rng(seed)
    return query_quality(rng.random(QUERIES) < 0.5, rng.integers(0, 11, QUERIES) / 10)


def run_gate(
    challenger: np.ndarray, champion: np.ndarray | None, past_qualities: list[float] | None = None, **options
) -> GateDecision:
    protocols = np.repeat(["unseen_title", "unseen_show"], QUERIES // 2)[: len(challenger)]
    protocols = options.pop("protocols", protocols)
    groups = options.pop("groups", np.arange(len(challenger)) % 150)
    answers = QueryQualities(challenger, champion, protocols, groups)
    return decide_promotion(answers, past_qualities or [], np.random.default_rng(1), **options)


def test_quality_is_the_mean_of_correctness_and_precision():
    assert query_quality(np.array([True, False]), np.array([0.4, 0.8])).tolist() == [0.7, 0.4]


def test_no_champion_promotes():
    decision = run_gate(qualities(), None)
    assert decision.promote and "no champion yet" in decision.reason
    assert decision.quality == pytest.approx(qualities().mean())


def test_same_model_is_not_promoted():
    decision = run_gate(qualities(), qualities(), same_model=True)
    assert not decision.promote and decision.reason.startswith("same model")


def test_clearly_better_promotes():
    decision = run_gate(np.minimum(qualities() + 0.1, 1), qualities())
    assert decision.promote and decision.reason.startswith("better than the champion")
    assert decision.interval is not None and decision.interval[0] > 0


def test_clearly_worse_is_not_promoted():
    decision = run_gate(qualities() - 0.1, qualities())
    assert not decision.promote
    assert decision.difference == pytest.approx(-0.1)
    assert "worse than the champion" in decision.reason and "-0.100" in decision.reason


def test_a_little_worse_within_the_noise_promotes():
    rng = np.random.default_rng(2)
    challenger = np.clip(qualities() - 0.005 + rng.normal(0, 0.3, QUERIES), 0, 1)
    decision = run_gate(challenger, qualities())
    assert decision.interval is not None and decision.interval[0] < 0 < decision.interval[1]
    assert decision.promote and "not shown to be worse" in decision.reason


def test_a_gradual_decline_is_stopped():
    best = float(qualities().mean()) + 0.2
    decision = run_gate(qualities(), qualities(), past_qualities=[best, 0.1])
    assert not decision.promote and f"{best:.3f}" in decision.reason
    assert "best of the last 2 promoted" in decision.reason
    assert run_gate(
        qualities(), qualities(), past_qualities=[float(qualities().mean()) + 0.01]
    ).promote  # within the interval


def test_only_the_last_promoted_models_count():
    assert not run_gate(qualities(), qualities(), past_qualities=[0.99] + [0.1] * (MAX_PROMOTED - 1)).promote
    assert run_gate(qualities(), qualities(), past_qualities=[0.99] + [0.1] * MAX_PROMOTED).promote


def test_a_small_constant_loss_is_significant_in_a_paired_test():
    decision = run_gate(qualities() - 0.01, qualities())
    assert not decision.promote and decision.interval == pytest.approx((-0.01, -0.01))


def test_groups_of_one_franchise_widen_the_interval():
    difference = np.where(np.arange(QUERIES) < 100, -0.2, 0.01)
    steady = run_gate(
        qualities() + difference,
        qualities(),
        groups=np.arange(QUERIES),
        protocols=np.full(QUERIES, "unseen_show"),
    )
    one_franchise = run_gate(
        qualities() + difference,
        qualities(),
        groups=np.maximum(np.arange(QUERIES), 100),
        protocols=np.full(QUERIES, "unseen_show"),
    )
    assert not steady.promote
    assert one_franchise.promote  # all the loss stands in one group


def test_all_equal_promotes():
    decision = run_gate(qualities(), qualities())
    assert decision.promote and decision.difference == 0 and decision.interval == (0, 0)


def test_no_queries_empty():
    nothing = np.zeros(0)
    assert not run_gate(nothing, nothing).promote
    assert run_gate(nothing, None).promote


def test_one_query_single_cannot_be_resampled():
    decision = run_gate(np.array([0.8]), np.array([0.2]))
    assert not decision.promote and decision.interval is None and "1 shows are too few" in decision.reason


def test_nan_and_different_lengths_are_errors():
    with pytest.raises(ValueError, match="1 of 400 queries have no quality"):
        run_gate(np.where(np.arange(QUERIES) == 3, np.nan, qualities()), qualities())
    with pytest.raises(ValueError, match="per query"):
        run_gate(qualities(), qualities()[:-1])


def test_decisions_are_deterministic():
    assert run_gate(qualities(1), qualities(2)) == run_gate(qualities(1), qualities(2))


@pytest.mark.parametrize(("k", "block"), [(10, arrays.BLOCK), (1000, arrays.BLOCK), (10, 7)])
def test_a_model_equals_itself_for_any_number_of_neighbours(learnt, without_run, monkeypatch, k, block):
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate, score_baselines

    home, _, _, corpus, _, lexicon = learnt
    vectors = without_run(embed, str(home), corpus, lexicon)
    clustering = worlds.publish_clusters(home, corpus, vectors)
    settings = EvaluateSettings(k=k, baselines=(), resamples=100)
    baselines = without_run(score_baselines, str(home), corpus, settings)
    scores = without_run(evaluate, str(home), corpus, vectors, clustering, baselines, settings)
    assert neighbour_count(home / scores.path) == k
    monkeypatch.setattr(arrays, "BLOCK", block)  # titles that the champion embeds at once
    answers = score_models(home / corpus.path, home / scores.path, home / lexicon.path)
    decision = decide_promotion(answers, [], np.random.default_rng(0), resamples=100)
    assert decision.difference == 0 and decision.interval == (0, 0)
    assert decision.quality is not None and (decision.quality > 0.9) == (
        k == 10
    )  # with all of them voting, the most frequent category wins
