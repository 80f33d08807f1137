"""The classifier of sub-titles on a toy guide: results, files, resuming, errors."""

import itertools
import os

import numpy as np
import pytest
import torch

from tasks.optimizers import Adam
from tasks.recurrent.encoder import Recurrent
from tasks.recurrent.training import RecurrentTrainingSettings
from tasks.subtitles.classifier import PatternClassifier, PatternError, PatternTraining
from tasks.subtitles.confusion import confusion_table, count_confusion, plot_confusion, precisions
from tasks.subtitles.ngrams import ngrams
from tasks.subtitles.rules import PATTERNS
from tasks.subtitles.settings import PatternSettings

FIRST = ("Lost", "Silent", "Golden", "Burning", "Broken", "Hidden")
SECOND = ("River", "Garden", "Letter", "Harbour", "Winter", "Stranger")
TITLES = [f"The {first} {second}" for first, second in itertools.product(FIRST, SECOND)]
GUIDE = [
    *TITLES,
    *(f"Episode {number}" for number in range(1, 60)),
    *(f"{title}, Part {number}" for title in TITLES for number in (1, 2)),
    *(f"{one[4:]} / {other[4:]}" for one, other in itertools.pairwise(TITLES)),
    *(f"vom {day:02}.05.2022" for day in range(1, 29)),
    *("Lost Harbour", "Winter", "Golden Garden", "Hidden Letter"),
]
SMALL = PatternSettings(
    encoder=Recurrent(character_dim=16, hidden=48, dropout=0.0),
    training=RecurrentTrainingSettings(epochs=3, batch_size=32, optimizer=Adam(learning_rate=0.01)),
    examples=300,
    unlabelled=4,
)


def train(settings=SMALL, texts=GUIDE):
    training = PatternTraining(texts, settings)
    progress = list(training.run())
    return training, training.finish(), progress


@pytest.fixture(scope="module")
def trained():
    return train()


def test_it_labels_sub_titles_without_a_rule(trained):
    _, model, progress = trained
    assert progress[-1].metrics["loss"] < progress[0].metrics["loss"]
    asked = ["Lost Garden; Broken Winter", "Kapitel 12"]
    said = [model.classes[best] for best in model.probabilities(asked).argmax(axis=1)]
    assert said == ["segments", "episode_number"]
    assert model.probabilities([]).shape == (0, len(model.classes))
    assert np.allclose(model.probabilities(["Kapitel 12", ""]).sum(axis=1), 1, atol=1e-5)


def test_rules_decide_first_and_have_no_probability(trained):
    found = trained[1].classify(["Episode 3", "Stranger; Harbour"])
    assert found.names[0] == "episode_number" and found.nullable_probabilities()[0] is None
    assert 0.1 < found.nullable_probabilities()[1] <= 1
    assert found.count(by_rules_only=True) == {"episode_number": 1}


def test_a_pattern_is_withheld_where_the_sub_title_has_no_form_of_it(trained):
    model = trained[1]
    eager = PatternClassifier(
        model.encoder, model.head, model.classes, {**model.metadata, "least": dict.fromkeys(PATTERNS, 0.0)}
    )
    asked = ["Kapitel 12", "Oldsmobile 12"]
    said = [model.classes[best] for best in model.probabilities(asked).argmax(axis=1)]
    assert said == ["episode_number"] * 2 and eager.classify(asked).names == ["episode_number", ""]


def test_uncertain_titles_have_no_pattern(trained):
    model = trained[1]
    careful = PatternClassifier(model.encoder, model.head, model.classes, {**model.metadata, "least": {}})
    assert careful.classify(["qqq 7 - zzz; ß"]).names == [""]


def test_examples_are_the_most_frequent_that_no_rule_labels(trained):
    texts = ["Episode 3", "Lost Garden; Broken Winter", "Golden Letter; Silent River"]
    found = trained[1].classify(texts)
    assert found.examples(texts, [9, 2, 5], 1)["segments"] == ["Golden Letter; Silent River"]


def test_ngrams_of_a_text_do_not_depend_on_its_neighbours():
    found, alone = ngrams(["Anna Loos", "", "Ørken 9"]), ngrams(["Ørken 9"])
    assert np.array_equal(found[2], alone[0]) and 0 <= found.values.min() <= found.values.max() < 1 << 16
    assert len(ngrams([])) == 0
    assert len(set(ngrams(["Anna Loos"])[0]) & set(ngrams(["Tom Bix"])[0])) >= 10  # one shape


def test_files_give_the_same_classifier(trained, tmp_path):
    model = trained[1]
    model.save(tmp_path)
    assert np.array_equal(
        PatternClassifier.open(tmp_path).probabilities(GUIDE[:50]), model.probabilities(GUIDE[:50])
    )


@pytest.mark.slow
def test_one_seed_gives_the_same_bits_and_a_resumed_run_too(trained):
    training, model, _ = trained
    stopped = PatternTraining(GUIDE, SMALL)
    next(stopped.run())
    kept = {name: tensor.clone() for name, tensor in stopped.training.tensors().items()}
    resumed = PatternTraining(GUIDE, SMALL)
    resumed.training.restore(stopped.training.epoch, stopped.training.steps, kept)
    list(resumed.run())
    pairs = zip(resumed.training.tensors().items(), training.training.tensors().values(), strict=True)
    assert [name for (name, ours), theirs in pairs if not torch.equal(ours, theirs)] == []
    assert resumed.finish().metadata == model.metadata


def test_a_guide_without_patterns_is_refused_in_a_line():
    with pytest.raises(PatternError, match="the rules find 1 patterns in 3 distinct sub-titles; two or more"):
        PatternTraining(["The Skull", "Der Brief", "Skandal"], SMALL)


def test_confusion_counts_held_out_sub_titles(trained):
    training, model, _ = trained
    counts = count_confusion(model, training.held_out_examples)
    assert (
        counts.sum() == len(training.held_out_examples.labels)
        and counts.diagonal().sum() > 0.6 * counts.sum()
    )
    said = counts.sum(axis=0)
    assert np.array_equal(precisions(counts)[said > 0], counts.diagonal()[said > 0] / said[said > 0])
    assert confusion_table(model.classes, counts).splitlines()[0] == ",".join(("rule", *model.classes))
    assert np.array(plot_confusion(model.classes, counts).data[0].text).shape == counts.shape


@pytest.mark.soak
@pytest.mark.skipif("GUIDESPACE_DATA" not in os.environ, reason="needs real guides (GUIDESPACE_DATA)")
def test_precision_on_what_no_rule_labels_has_not_fallen():
    from benchmarks.objectives.subtitles import macro_precision, measure, precision

    done = measure()
    assert macro_precision(done.rows) >= 0.9 and precision(done.rows, "plain_title") >= 0.95
    assert done.answered >= 0.45 * done.unlabelled
    assert done.cpu_seconds < 120
