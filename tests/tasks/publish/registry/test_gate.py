"""Decisions of the gate."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from storage import arrays
from tasks.evaluate.settings import EvaluateSettings
from tasks.publish.registry.gate import CHAMPION, REFERENCE, GateDecision, decide_promotion
from tasks.publish.registry.quality import (
    COMPARED,
    QualityScorer,
    QueryQualities,
    TonightsResults,
    neighbour_count,
    query_quality,
    read_headline,
)
from tests import worlds

QUERIES = 400


def qualities(seed: int = 0) -> np.ndarray:
    """Makes the quality of a champion on each query."""
    rng = np.random.default_rng(seed)
    return query_quality(rng.random(QUERIES) < 0.5, rng.integers(0, 11, QUERIES) / 10)


def run_gate(
    challenger: np.ndarray, champion: np.ndarray | None, reference: np.ndarray | None = None, **options
) -> GateDecision:
    """Runs the gate on models whose kinds of vectors have the same qualities."""
    protocols = np.repeat(["unseen_title", "unseen_show"], QUERIES // 2)[: len(challenger)]
    protocols = options.pop("protocols", protocols)
    groups = options.pop("groups", np.arange(len(challenger)) % 150)
    models = {CHAMPION: champion, REFERENCE: reference}
    others = {name: dict.fromkeys(COMPARED, model) for name, model in models.items() if model is not None}
    ours = dict.fromkeys(COMPARED, challenger)
    ours |= options.pop("changed", {})
    answers = QueryQualities(ours, others, np.arange(len(challenger)), protocols, groups)
    return decide_promotion(answers, np.random.default_rng(1), **options)


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


@pytest.mark.parametrize("name", COMPARED)
def test_a_loss_in_one_kind_of_vectors_refuses_and_is_named(name):
    decision = run_gate(qualities(), qualities(), changed={name: qualities() - 0.1})
    assert not decision.promote
    assert decision.reason.startswith(f"worse than the champion: {COMPARED[name]}: quality ")


def test_a_loss_against_the_oldest_promoted_model_refuses():
    decision = run_gate(qualities(), qualities() - 0.01, qualities() + 0.1)
    assert not decision.promote and decision.reason.startswith("worse than the oldest promoted model: ")
    assert decision.difference == pytest.approx(0.01)  # from the champion


class Year:
    """Nights of a home: models with an ability, noise of each model on each title, and titles that change."""

    TITLES, FAMILIES, TONIGHT, FILES = 4_000, 2_000, 800, 7

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.season = self.rng.normal(0.5, 0.3, self.TITLES)  # how difficult a title is
        self.promoted = [self.train(0.0)]

    def train(self, ability: float) -> dict[str, np.ndarray]:
        shared = self.rng.normal(ability, 0.15, self.TITLES)
        return {name: shared + self.rng.normal(0, 0.1, self.TITLES) for name in COMPARED}

    def run(self, night: int, ability: float) -> GateDecision:
        start = night * 40 % self.TITLES  # a twentieth of the titles is new each night
        titles = (start + np.arange(self.TONIGHT)) % self.TITLES
        challenger = self.train(ability)
        answers = QueryQualities(
            {name: (self.season + values)[titles] for name, values in challenger.items()},
            {
                label: {name: (self.season + values)[titles] for name, values in model.items()}
                for label, model in zip(
                    (CHAMPION, REFERENCE), (self.promoted[-1], self.promoted[0]), strict=True
                )
            },
            titles,
            np.full(self.TONIGHT, "unseen_title"),
            titles * self.FAMILIES // self.TITLES,
        )
        decision = decide_promotion(answers, self.rng, resamples=400)
        if decision.promote:
            self.promoted = [*self.promoted, challenger][-self.FILES :]
        return decision


def test_fewer_than_one_in_twenty_nights_of_a_year_is_refused_without_a_loss():
    year = Year(0)
    assert np.mean([not year.run(night, 0.0).promote for night in range(365)]) < 0.05


def test_a_loss_of_two_hundredths_is_detected_within_ten_nights():
    detected = 0
    for seed in range(20):
        home = Year(seed)
        for night in range(10):
            home.run(night, 0.0)
        detected += not all(home.run(night, -0.02).promote for night in range(10, 20))
    assert detected >= 19


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


@pytest.mark.parametrize(("k", "block"), [(10, arrays.BLOCK_ROWS), (1000, arrays.BLOCK_ROWS), (10, 7)])
def test_a_model_equals_itself_for_any_number_of_neighbours(
    learnt, toy_model, without_run, monkeypatch, k, block
):
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate, score_baselines
    from tasks.predictor.task import fit_linear
    from tasks.publish.task import pack

    home, _, _, corpus, _, lexicon = learnt
    vectors = without_run(embed, str(home), corpus, lexicon)
    clustering = worlds.publish_clusters(home, corpus, vectors)
    settings = EvaluateSettings(k=k, baselines=(), resamples=100)
    baselines = without_run(score_baselines, str(home), corpus, settings)
    linear = without_run(fit_linear, str(home), corpus)
    model = without_run(pack, str(home), corpus, lexicon, vectors, linear)
    scores = without_run(evaluate, str(home), corpus, vectors, clustering, baselines, model, settings)
    assert neighbour_count(home / scores.path) == k
    monkeypatch.setattr(arrays, "BLOCK_ROWS", block)  # titles that the champion embeds at once
    headline = read_headline(home / scores.path)
    scorer = QualityScorer(home / corpus.path, headline.titles, k)
    champion = scorer.score_model(toy_model)
    tonight = scorer.score_challenger(home / vectors.path, home / scores.path)
    ours = {**headline.challenger, **tonight}
    np.testing.assert_array_equal(champion["predictor"], tonight["predictor"])
    results = TonightsResults(home / model.path, home / vectors.path, ours)
    assert results.are_valid_for(toy_model) and not results.are_valid_for(home / corpus.path)
    for name, values in scorer.score_model(toy_model, results).items():
        np.testing.assert_array_equal(values, champion[name])
    answers = headline._replace(challenger=ours, others={CHAMPION: champion})
    rows = pq.read_table(home / scores.path / "queries.parquet", filters=[("form", "==", "title_only")])
    assert scorer.rows.tolist() == rows["title_id"].to_pylist()
    expected = query_quality(rows["correct"].to_numpy(), rows["precision_at_k"].to_numpy())
    for model in (ours, champion):
        np.testing.assert_array_equal(model["vectors"], expected)  # as in the scores
    decision = decide_promotion(answers, np.random.default_rng(0), resamples=100)
    assert decision.difference == 0 and decision.interval == (0, 0)
    assert decision.quality is not None and (decision.quality > 0.9) == (
        k == 10
    )  # with all of them voting, the most frequent category wins
