"""The scores of a toy space, in the form that other programs read."""

import json

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from storage.arrays import Ragged
from tasks.baselines import Majority, TfidfKnn, TfidfSvm
from tasks.baselines.inputs import TitleInputs
from tasks.evaluate.settings import EvaluateSettings
from tasks.scoring.baselines import run_baselines
from tasks.scoring.metrics import METRICS
from tasks.scoring.protocols import (
    FORMS,
    MAX_SCORED,
    MAX_TRAINING,
    PROTOCOLS,
    CorpusTitles,
    ProtocolScores,
    held_out_sets,
    judge_knn,
    score_title_vectors,
)

WORDS = [["kitchen", "cook", "bake"], ["football", "league", "cup"], ["news", "world", "report"]]
REASONS = {
    "title_context": "title and context are not built yet",
    "next_period": "the guide spans 6 days; 8 are needed",
}


def toy(next_period: int = 0) -> tuple[CorpusTitles, TitleInputs, np.ndarray]:
    """Three genres on three axes: the genre is the nearest axis, and every title is called by its genre's
    words."""
    rng = np.random.default_rng(0)
    genre = np.arange(180) % 3
    split = np.array(["train"] * 120 + ["unseen_title"] * 30 + ["unseen_show"] * 27 + ["placeholder"] * 3)
    split[150 : 150 + next_period] = "next_period"
    rows = [[int(g)] for g in genre]
    rows[0] = rows[121] = rows[
        179
    ] = []  # a training title, a held-out title and a placeholder without a label
    vectors = np.eye(3)[genre] + rng.normal(0, 0.05, (180, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    titles = CorpusTitles(
        split=split,
        labels=Ragged.from_rows(rows),
        label_count=3,
        family=np.arange(180) // 5,
        oov=np.arange(180) % 7 == 0,
        rare=np.zeros(180, dtype=bool),
    )
    texts = [f"{WORDS[g][rng.integers(3)]} {WORDS[g][rng.integers(3)]} {row}" for row, g in enumerate(genre)]
    return titles, TitleInputs(texts, np.eye(4, dtype=np.float32)[genre]), vectors.astype(np.float32)


def run(
    titles: CorpusTitles,
    inputs: TitleInputs,
    vectors: np.ndarray,
    settings: EvaluateSettings | None = None,
    seed: int = 0,
    reasons: dict[str, str] = REASONS,
) -> tuple[ProtocolScores, list]:
    steps = []
    settings = settings or EvaluateSettings(resamples=100)

    def no_support(rows: np.ndarray, form: str) -> np.ndarray:
        return np.zeros((len(rows), titles.label_count), dtype=np.float32)

    def sets():
        return held_out_sets(titles, settings.resamples, np.random.default_rng(seed), reasons)

    work = run_baselines(titles, inputs.take, settings.baselines, sets())
    while True:
        try:
            steps.append(next(work))
        except StopIteration as stop:
            arguments = titles, dict.fromkeys(FORMS, vectors), no_support, stop.value, sets(), settings.k
            return score_title_vectors(*arguments), steps


@pytest.fixture(scope="module")
def scored() -> tuple[ProtocolScores, list]:
    return run(*toy())


def test_the_form_is_the_one_other_programs_read(scored):
    protocols = scored[0].protocols
    assert [*protocols] == [*PROTOCOLS]
    for protocol in PROTOCOLS:
        assert tuple(protocols[protocol]) == FORMS
        assert protocols[protocol]["title_context"] == {
            "n": 0,
            "reason": "title and context are not built yet",
        }
    assert protocols["next_period"]["title_only"] == {
        "n": 0,
        "reason": "the guide spans 6 days; 8 are needed",
    }
    scores = protocols["unseen_title"]["title_only"]
    rivals = ["majority", "tfidf_knn", "l1_logistic", "tfidf_svm", "sentence_knn", "tfidf_svm_sentence"]
    assert list(scores) == ["predictor", "knn", "knn_oov", *rivals, "n"]
    for name in ("knn", *rivals):
        assert list(scores[name]) == [*METRICS, "ci95"]
        assert list(scores[name]["ci95"]) == list(METRICS)
    assert scores["knn_oov"]["n"] == 4  # rows 126, 133, 140 and 147 of 120 … 149
    json.dumps(protocols, allow_nan=False)


def test_a_space_of_three_axes_is_scored_as_perfect_and_the_majority_is_not(scored):
    scores = scored[0].protocols["unseen_title"]["title_only"]
    assert scores["n"] == 29  # one of thirty has no label
    assert {name: scores["knn"][name] for name in METRICS} == dict.fromkeys(METRICS, 1.0)
    assert scores["knn"]["ci95"]["accuracy"] == [1.0, 1.0]
    assert scores["tfidf_svm"]["accuracy"] == 1.0 and scores["tfidf_knn"]["precision_at_k"] > 0.9
    assert scores["sentence_knn"]["accuracy"] == scores["sentence_knn"]["precision_at_k"] == 1.0
    assert scores["tfidf_svm_sentence"]["accuracy"] == 1.0
    assert 0.3 < scores["majority"]["accuracy"] < 0.4
    assert (
        scores["majority"]["precision_at_k"] is None and scores["majority"]["ci95"]["precision_at_k"] is None
    )
    assert scores["tfidf_svm"]["precision_at_k"] is None


def test_rows_name_every_held_out_title_and_its_group(scored):
    rows = scored[0].rows
    assert list(rows) == [
        "form",
        "protocol",
        "title_id",
        "group",
        "correct",
        "precision_at_k",
        "reciprocal_rank",
        "predictor_correct",
    ]
    titles, shows = rows["protocol"] == "unseen_title", rows["protocol"] == "unseen_show"
    assert rows["title_id"][titles].tolist() == [row for row in range(120, 150) if row != 121]
    assert rows["title_id"][shows].tolist() == list(range(150, 177))
    assert (rows["group"] == rows["title_id"] // 5).all()
    assert rows["correct"].all() and set(rows["form"]) == {"title_only"}


def test_progress_runs_to_its_end(scored):
    steps = scored[1]
    assert [step.total for step in steps] == [6] * len(steps)
    assert [step.step for step in steps] == list(range(1, 7))
    assert steps[0].note.startswith("title only: majority fitted to 119 titles in ")


def test_next_period_and_context_are_scored_where_they_exist():
    settings = EvaluateSettings(resamples=100, baselines=(Majority(),))
    protocols = run(*toy(next_period=20), settings, reasons={})[0].protocols
    assert protocols["next_period"]["title_only"]["n"] == protocols["next_period"]["title_context"]["n"] == 20
    assert list(protocols["next_period"]["title_only"]) == ["predictor", "knn", "knn_oov", "majority", "n"]


def test_rivals_that_read_sentence_vectors_are_left_out_where_there_are_none():
    titles, inputs, vectors = toy()
    result, steps = run(titles, TitleInputs(inputs.texts, np.zeros((180, 0), np.float32)), vectors)
    scores = result.protocols["unseen_show"]["title_only"]
    for name in ("sentence_knn", "tfidf_svm_sentence"):
        assert scores[name]["n"] == 0 and "no sentence vectors" in scores[name]["reason"]
    assert scores["tfidf_svm"]["accuracy"] == 1.0 and scores["n"] == 27
    assert len(steps) == steps[-1].total and "sentence_knn skipped: the corpus" in steps[4].note


def test_one_seed_gives_the_same_bits_and_another_moves_only_intervals():
    titles, inputs, vectors = toy()
    blurred = vectors + np.random.default_rng(9).normal(0, 0.6, vectors.shape)
    unit = blurred / np.linalg.norm(blurred, axis=1, keepdims=True)
    mixed = unit.astype(np.float32)
    one, same, other = (
        run(titles, inputs, mixed, seed=seed)[0].protocols["unseen_title"]["title_only"] for seed in (1, 1, 2)
    )
    assert one == same and one != other
    assert all(one["tfidf_knn"][name] == other["tfidf_knn"][name] for name in METRICS)


def test_titles_without_a_known_token_are_scored_not_left_out():
    titles, inputs, vectors = toy()
    vectors[130:140] = 0
    scores = run(titles, inputs, vectors, EvaluateSettings(resamples=100, baselines=()))[0].protocols
    knn = scores["unseen_title"]["title_only"]
    assert knn["n"] == 29
    assert knn["knn"]["precision_at_k"] == pytest.approx(19 / 29)


def test_no_title_holds_an_unknown_word():
    titles, *about = toy()
    clear = CorpusTitles(
        split=titles.split,
        labels=titles.labels,
        label_count=3,
        family=titles.family,
        oov=np.zeros(180, dtype=bool),
        rare=np.zeros(180, dtype=bool),
    )
    scores = run(clear, *about, EvaluateSettings(resamples=100, baselines=()))[0].protocols["unseen_show"][
        "title_only"
    ]
    assert scores["knn_oov"]["n"] == 0 and "every word" in scores["knn_oov"]["reason"]


def test_nothing_labelled_empty():
    titles, *about = toy()
    bare = CorpusTitles(
        split=titles.split,
        labels=Ragged.from_rows([[]] * 180),
        label_count=0,
        family=titles.family,
        oov=titles.oov,
        rare=titles.rare,
    )
    result, steps = run(bare, *about)
    assert result.protocols["unseen_title"]["title_only"] == {
        "n": 0,
        "reason": "no training title has a label",
    }
    assert not steps and len(result.rows["title_id"]) == 0 and result.rows["correct"].dtype == bool


def test_the_champion_is_judged_by_the_same_function():
    titles, _, vectors = toy()
    judged = judge_knn(titles, vectors, titles.labelled("unseen_show"), k=10)
    assert judged.correct.all() and len(judged) == 27


def test_settings_speak_to_the_form():
    schema = TypeAdapter(EvaluateSettings).json_schema()
    assert schema["properties"]["k"]["minimum"] == 1 and schema["properties"]["resamples"]["description"]
    assert TypeAdapter(EvaluateSettings).validate_python(
        {"k": 5, "baselines": [{"name": "tfidf_svm", "cost": 1.0}]}
    ).baselines == (TfidfSvm(cost=1.0),)
    for wrong in ({"k": 0}, {"neighbours": 3}, {"baselines": [{"name": "tfidf_svm", "c": 1.0}]}):
        with pytest.raises(ValidationError):
            TypeAdapter(EvaluateSettings).validate_python(wrong)
    with pytest.raises(ValueError, match="each baseline only once"):
        EvaluateSettings(baselines=(TfidfKnn(), TfidfKnn(k=3)))


def test_of_many_titles_the_same_ones_are_drawn_each_time():
    sizes = [MAX_TRAINING + 9, MAX_SCORED + 9]
    ids = np.zeros(sum(sizes), dtype=np.int32)
    titles = CorpusTitles(
        split=np.repeat(["train", "unseen_title"], sizes),
        labels=Ragged(np.arange(len(ids) + 1), ids),
        label_count=1,
        family=ids,
        oov=ids > 0,
        rare=ids < 0,
    )
    for split, most in (("train", MAX_TRAINING), ("unseen_title", MAX_SCORED)):
        drawn = titles.labelled(split)
        assert len(drawn) == most and (np.diff(drawn) > 0).all() and (titles.split[drawn] == split).all()
        np.testing.assert_array_equal(titles.labelled(split), drawn)
