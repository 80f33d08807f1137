"""The gate's cases."""

import numpy as np
import pytest

from storage import arrays
from tasks.evaluate.settings import EvaluateSettings
from tasks.publish.registry.gate import (
    REMEMBERED,
    Answers,
    Decision,
    ask_both,
    decide,
    query_quality,
    votes_of,
)
from tests import worlds

QUERIES = 400


def world(seed: int = 0) -> np.ndarray:
    """A champion's quality of each query: right or wrong, with some precision."""
    rng = np.random.default_rng(seed)
    return query_quality(rng.random(QUERIES) < 0.5, rng.integers(0, 11, QUERIES) / 10)


def ask(
    challenger: np.ndarray, champion: np.ndarray | None, best_of_last: list[float] | None = None, **options
) -> Decision:
    protocols = np.repeat(["unseen_title", "unseen_show"], QUERIES // 2)[: len(challenger)]
    protocols = options.pop("protocols", protocols)
    groups = options.pop("groups", np.arange(len(challenger)) % 150)
    answers = Answers(challenger, champion, protocols, groups)
    return decide(answers, best_of_last or [], np.random.default_rng(1), **options)


def test_quality_is_the_mean_of_correctness_and_precision():
    assert query_quality(np.array([True, False]), np.array([0.4, 0.8])).tolist() == [0.7, 0.4]


def test_no_champion_promotes():
    decision = ask(world(), None)
    assert decision.promote and "no champion yet" in decision.reason
    assert decision.quality == pytest.approx(world().mean())


def test_same_model_decides_nothing():
    decision = ask(world(), world(), same_model=True)
    assert not decision.promote and decision.reason.startswith("same model")


def test_clearly_better_promotes():
    decision = ask(np.minimum(world() + 0.1, 1), world())
    assert decision.promote and decision.reason.startswith("better than the champion")
    assert decision.interval is not None and decision.interval[0] > 0


def test_clearly_worse_does_not():
    decision = ask(world() - 0.1, world())
    assert not decision.promote
    assert decision.difference == pytest.approx(-0.1)
    assert "worse than the champion" in decision.reason and "-0.100" in decision.reason


def test_a_little_worse_within_the_noise_promotes():
    rng = np.random.default_rng(2)
    challenger = np.clip(world() - 0.005 + rng.normal(0, 0.3, QUERIES), 0, 1)
    decision = ask(challenger, world())
    assert decision.interval is not None and decision.interval[0] < 0 < decision.interval[1]
    assert decision.promote and "not shown to be worse" in decision.reason


def test_small_steps_down_are_stopped_by_the_best_of_the_last():
    best = float(world().mean()) + 0.2
    decision = ask(world(), world(), best_of_last=[best, 0.1])
    assert (
        not decision.promote
        and f"{best:.3f}" in decision.reason
        and "best of the last 2 promoted" in decision.reason
    )
    assert ask(world(), world(), best_of_last=[float(world().mean()) + 0.01]).promote  # within the interval


def test_only_the_last_thirty_are_remembered():
    assert not ask(world(), world(), best_of_last=[0.99] + [0.1] * (REMEMBERED - 1)).promote
    assert ask(world(), world(), best_of_last=[0.99] + [0.1] * REMEMBERED).promote


def test_pairing_shows_a_small_steady_loss_that_separate_intervals_would_not():
    decision = ask(world() - 0.01, world())
    assert not decision.promote and decision.interval == pytest.approx((-0.01, -0.01))


def test_groups_of_one_franchise_widen_the_interval():
    difference = np.where(np.arange(QUERIES) < 100, -0.2, 0.01)
    steady = ask(
        world() + difference, world(), groups=np.arange(QUERIES), protocols=np.full(QUERIES, "unseen_show")
    )
    one_franchise = ask(
        world() + difference,
        world(),
        groups=np.maximum(np.arange(QUERIES), 100),
        protocols=np.full(QUERIES, "unseen_show"),
    )
    assert not steady.promote
    assert one_franchise.promote  # all the loss stands in one group


def test_all_equal_promotes():
    decision = ask(world(), world())
    assert decision.promote and decision.difference == 0 and decision.interval == (0, 0)


def test_no_queries_empty():
    nothing = np.zeros(0)
    assert not ask(nothing, nothing).promote
    assert ask(nothing, None).promote


def test_one_query_single_leaves_nothing_to_resample():
    decision = ask(np.array([0.8]), np.array([0.2]))
    assert not decision.promote and decision.interval is None and "1 shows are too few" in decision.reason


def test_nan_and_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="1 of 400 queries have no quality"):
        ask(np.where(np.arange(QUERIES) == 3, np.nan, world()), world())
    with pytest.raises(ValueError, match="per query"):
        ask(world(), world()[:-1])


def test_one_seed_gives_one_answer():
    assert ask(world(1), world(2)) == ask(world(1), world(2))


@pytest.mark.parametrize(("k", "block"), [(10, arrays.BLOCK), (1000, arrays.BLOCK), (10, 7)])
def test_a_model_is_as_good_as_itself_whatever_number_of_neighbours_votes(
    learnt, without_run, monkeypatch, k, block
):
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate, score_baselines

    home, _, _, corpus, _, lexicon = learnt
    vectors = without_run(embed, str(home), corpus, lexicon)
    clustering = worlds.publish_clusters(home, corpus, vectors)
    settings = EvaluateSettings(k=k, baselines=(), resamples=100)
    baselines = without_run(score_baselines, str(home), corpus, settings)
    scores = without_run(evaluate, str(home), corpus, vectors, clustering, baselines, settings)
    assert votes_of(home / scores.path) == k
    monkeypatch.setattr(arrays, "BLOCK", block)  # titles that the champion embeds at once
    answers = ask_both(home / corpus.path, home / scores.path, home / lexicon.path)
    decision = decide(answers, [], np.random.default_rng(0), resamples=100)
    assert decision.difference == 0 and decision.interval == (0, 0)
    assert decision.quality is not None and (decision.quality > 0.9) == (
        k == 10
    )  # with all of them voting, the most frequent category wins
