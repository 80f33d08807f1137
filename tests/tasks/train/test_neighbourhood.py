"""The neighbourhood objective against a loop over triplets; where positives come from."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.tables import as_section, write_safetensors
from tasks.encoder.bags import Bagger
from tasks.train.loop import Training
from tasks.train.objectives.neighbourhood import Neighbourhood, NeighbourhoodPlan, NeighbourhoodSampler
from tasks.train.objectives.positives import (
    BasePositives,
    Nearest,
    Tags,
    Topics,
    draw_companion,
    nearest_of_class,
)
from tests.tasks.train.training import trained
from tests.worlds import TRAINING

LABELS = Ragged.from_rows([[0], [0, 1], [1], [2], [0], [2, 1], [0, 1], [3]])
PLAN = NeighbourhoodPlan(np.array([0, 1, 3, 7, 4, 6, 5, 7]))  # the last anchor is its own positive


def unit_vectors(titles: int, seed: int = 0, dim: int = 4) -> torch.Tensor:
    drawn = torch.randn(titles, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn)


def targets(plan: NeighbourhoodPlan = PLAN):
    return NeighbourhoodSampler(8, None).collate(plan, LABELS, np.zeros(len(plan.title_ids), dtype=bool))


def naive(margin: float, vectors: np.ndarray, rows: np.ndarray) -> float:
    anchors, losses = len(rows) // 2, []
    for anchor in range(anchors):
        own, near = set(LABELS[rows[anchor]].tolist()), vectors[anchor] @ vectors[anchors + anchor]
        others = [place for place, row in enumerate(rows) if not own & set(LABELS[row].tolist())]
        slack = [margin - near + vectors[anchor] @ vectors[place] for place in others]
        violated = [value for value in slack if value > 0]
        losses.append(sum(violated) / max(1, len(violated)))
    return float(np.mean(losses))


@pytest.mark.parametrize("margin", [0.05, 0.4, 2.0])
def test_the_loss_equals_a_loop(margin: float):
    vectors = unit_vectors(8)
    vectors[2] = 0  # dropout left nothing of it
    found = Neighbourhood(margin=margin).loss(vectors.float(), targets())
    assert found.item() == pytest.approx(naive(margin, vectors.numpy(), PLAN.title_ids), abs=1e-6)


def test_satisfied_margins_have_no_gradient():
    rows = np.array([0, 3, 7, 4, 3, 7])
    vectors = torch.eye(3)[[0, 1, 2, 0, 1, 2]].requires_grad_()
    loss = Neighbourhood(margin=0.9).loss(vectors, targets(NeighbourhoodPlan(rows)))
    (grad,) = torch.autograd.grad(loss, vectors)
    assert loss == 0 and not grad.any()


def test_other_titles_of_the_class_have_no_influence():
    """Title 4 has title 0's category alone; where it is, is nothing to the pair (0, 6)."""
    known, vectors = targets(NeighbourhoodPlan(np.array([0, 4, 6, 1]))), unit_vectors(4).float()
    vectors.requires_grad_()
    loss = Neighbourhood(margin=2.0).loss(vectors, known)
    assert loss == 0 and not torch.autograd.grad(loss, vectors)[0].any()


# -- positives
# -----------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    groups=st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=3).map(sorted), min_size=2, max_size=20),
    seed=st.integers(0, 99),
)
def test_a_companion_shares_a_group_and_differs_if_possible(groups: list[list[int]], seed: int):
    rows = np.random.default_rng(seed).permutation(len(groups))[: len(groups) // 2 + 1]
    found = draw_companion(Ragged.from_rows(groups), rows, np.random.default_rng(seed))
    assert set(found.tolist()) <= set(rows.tolist())
    for row, other in zip(rows.tolist(), found.tolist(), strict=True):
        assert set(groups[row]) & set(groups[other])
        shared = [set(groups[row]) & set(groups[near]) for near in rows.tolist() if near != row]
        if other == row:  # one of its groups has no other of these titles
            assert any(not any(group in own for own in shared) for group in groups[row])


def test_companions_are_drawn_evenly():
    rows, rng = np.arange(5), np.random.default_rng(0)
    groups = Ragged.from_rows([[0], [0], [0], [0], [1]])
    drawn = np.array([draw_companion(groups, rows, rng) for _ in range(3000)])
    counts = np.array([np.bincount(drawn[:, row], minlength=5) for row in rows]) / 3000
    expected = np.full((5, 5), 1 / 3) * (1 - np.eye(5))
    expected[4], expected[:, 4], expected[4, 4] = 0, 0, 1
    np.testing.assert_allclose(counts, expected, atol=0.04)


def some_corpus(toy_corpus: Path) -> OpenCorpus:
    """Toy corpus in which every fifth title has a second category."""
    opened = open_corpus(toy_corpus)
    rows = [
        [*own, (own[0] + 1) % 3] if row % 5 == 0 and len(own) else own
        for row, own in enumerate(opened.labels[row] for row in range(len(opened)))
    ]
    return replace(opened, labels=Ragged.from_rows(rows))


def drawn(positives: BasePositives, corpus: OpenCorpus, buffers: dict[str, torch.Tensor]) -> np.ndarray:
    return positives.draw(corpus, buffers)(corpus.training, np.random.default_rng(1))


def test_tags_match_the_complete_set_of_categories(toy_corpus: Path):
    corpus = some_corpus(toy_corpus)
    for anchor, positive in zip(corpus.training, drawn(Tags(), corpus, {}), strict=True):
        assert set(corpus.labels[anchor].tolist()) == set(corpus.labels[positive].tolist())
        assert anchor != positive


def test_topics_are_of_the_same_class_and_topic(toy_corpus: Path):
    corpus, positives = some_corpus(toy_corpus), Topics(topics=6)
    buffers = positives.buffers(corpus)
    topics, others = buffers["topics"].numpy(), 0
    assert all(torch.equal(own, positives.buffers(corpus)[name]) for name, own in buffers.items())
    assert (topics[corpus.split > 0] == -1).all() and len(set(topics[corpus.training].tolist())) > 3
    for anchor, positive in zip(corpus.training, drawn(positives, corpus, buffers), strict=True):
        assert topics[anchor] == topics[positive]
        assert set(corpus.labels[anchor].tolist()) & set(corpus.labels[positive].tolist())
        others += anchor != positive
    assert others > len(corpus.training) / 2


def test_topics_are_described_by_their_words(toy_corpus: Path):
    positives, corpus = Topics(topics=6), open_corpus(toy_corpus)
    buffers = positives.buffers(corpus)
    topics = positives.details(toy_corpus, buffers)["topics"]
    sizes = [topic["titles"] for topic in topics]
    assert len(topics) == 6 and sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == (buffers["topics"] >= 0).sum()
    for topic in topics:
        assert 0 < len(topic["words"]) <= 10 and 0 < len(topic["examples"]) <= 5
        assert topic["words"][0] in " ".join(topic["examples"]).lower()


def test_stop_words_form_no_topic(toy_corpus: Path, tmp_path: Path):
    shutil.copytree(toy_corpus, folder := tmp_path / "corpus")
    names = pq.read_table(file := folder / "token_names.parquet")
    plain = Topics(topics=6).details(folder, Topics(topics=6).buffers(open_corpus(folder)))["topics"]
    first = plain[0]["words"][0]
    changed = pc.if_else(pc.equal(names["token"], first), "und", names["token"])
    pq.write_table(names.set_column(names.schema.get_field_index("token"), "token", changed), file)
    topics = Topics(topics=6).details(folder, Topics(topics=6).buffers(open_corpus(folder)))["topics"]
    assert topics and not any("und" in topic["words"] for topic in topics)


def test_a_guide_without_repeated_words_has_no_topics(toy_corpus: Path, tmp_path: Path):
    shutil.copytree(toy_corpus, folder := tmp_path / "corpus")
    names = pq.read_table(file := folder / "token_names.parquet")
    function_words = pa.array(["und"] * len(names))
    pq.write_table(names.set_column(names.schema.get_field_index("token"), "token", function_words), file)
    corpus, positives = open_corpus(folder), Topics()
    buffers = positives.buffers(corpus)
    assert (buffers["topics"] == -1).all() and positives.details(folder, buffers) == {"topics": []}
    np.testing.assert_array_equal(drawn(positives, corpus, buffers), corpus.training)
    checkpoint = tmp_path / "topics.safetensors"
    write_safetensors(checkpoint, {name: as_section(tensor) for name, tensor in buffers.items()}, {})
    assert load_file(checkpoint)["topic_words"].shape == (0, 0)


def test_topics_without_scikit_learn_are_an_error(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    with pytest.raises(
        ValueError, match=r"topics, which needs scikit-learn.*choose tags or nearest"
    ) as error:
        Training(toy_corpus, replace(TRAINING, objective=Neighbourhood(positives=Topics())))
    assert "\n" not in str(error.value)


def test_nearest_of_a_class_are_those_of_a_loop():
    vectors, labels = unit_vectors(8).float().numpy(), LABELS
    found, cosines = nearest_of_class(vectors, labels, 3), vectors @ vectors.T
    for row in range(8):
        own = set(labels[row].tolist())
        alike = [other for other in range(8) if other != row and own & set(labels[other].tolist())]
        best = sorted(alike, key=lambda other: -cosines[row, other])
        kept = [other for other in found[row].tolist() if other >= 0]
        assert kept[:1] == best[:1] and set(kept) <= set(best) and (len(kept) > 0 or not best)


def test_nearest_titles_are_computed_at_the_start_of_the_epoch(toy_corpus: Path):
    training = Training(
        toy_corpus, replace(TRAINING, objective=Neighbourhood(positives=Nearest(neighbours=4)), epochs=2)
    )
    corpus = open_corpus(toy_corpus)
    next(training_run := training.run())
    rows = corpus.training
    dense = training.settings.encoder.sentence_features(corpus.sentences[rows], corpus.descriptions[rows])
    vectors = training.trainer.vectors(
        corpus.tokens.take(rows), Bagger(corpus.kinds), dense, untrained=True
    ).numpy()
    first = training.trainer.buffers["neighbours"].clone()
    list(training_run)
    second = training.trainer.buffers["neighbours"].numpy()
    near = nearest_of_class(vectors, corpus.labels.take(rows), 4)
    np.testing.assert_array_equal(second[rows], rows[near])
    assert not np.array_equal(first.numpy(), second) and (second[corpus.split > 0] == -1).all()


def test_a_title_alone_in_its_category_is_its_positive(toy_corpus: Path):
    """It is its own positive."""
    corpus = open_corpus(toy_corpus)
    labels = np.zeros(len(corpus), dtype=np.int32)
    labels[corpus.training[3]] = 1
    alone = replace(corpus, labels=Ragged(np.arange(len(corpus) + 1), labels))
    for positives in (Tags(), Nearest()):
        buffers = positives.buffers(alone)
        near = drawn(positives, alone, buffers)
        assert near[3] == alone.training[3]


def test_two_groups_of_one_category_stay_separate(tmp_path: Path):
    """The benchmark's world, smaller: the other category lies between the tastes."""
    from benchmarks.objectives.neighbourhood import SETTINGS, accuracy, make_world

    world = make_world(tmp_path / "world", 1)
    options = {"dim": SETTINGS.dim, "epochs": 10, "workers": 0, "optimizer": SETTINGS.optimizer}
    objective = Neighbourhood(positives=Nearest(neighbours=10))
    ours = trained(world.folder, objective=objective, **options)
    assert accuracy(world, ours)[0] > 0.7
