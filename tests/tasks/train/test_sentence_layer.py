"""Training with and without sentence vectors in the corpus."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from storage.arrays import Ragged
from storage.formats.corpus import open_corpus
from tasks.encoder.bag import LAYER
from tasks.encoder.bags import Bagger
from tasks.train.loop import Training
from tasks.train.objectives.label import MIN_STEPS, MIN_TITLES, Label
from tests.tasks.train.training import trained, without_sentences
from tests.worlds import TRAINING


def test_the_layer_learns_and_places_titles_of_which_only_the_sentence_is_known(toy_corpus: Path):
    training, corpus = trained(toy_corpus), open_corpus(toy_corpus)
    assert training.trainer.dense.parameters[LAYER].shape == (TRAINING.dim, 512)
    rows = corpus.training
    labels = np.array([corpus.labels[row][0] for row in rows])
    dense = TRAINING.encoder.sentence_features(corpus.sentences[rows], corpus.descriptions[rows])
    nothing = Ragged.from_rows([[]] * len(rows), dtype=np.int64)
    vectors = training.trainer.vectors(nothing, Bagger(corpus.kinds), dense).numpy()
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    assert (labels[cosines.argmax(axis=1)] == labels).mean() > 0.9  # 1 in 3 by chance


def test_a_weight_of_zero_is_training_without_sentence_vectors(toy_corpus: Path, tmp_path: Path):
    """Rows get the same bits; the layer, which nothing asks for, stays as drawn."""
    bare = trained(without_sentences(toy_corpus, tmp_path / "bare"))
    assert bare.trainer.dense.parameters[LAYER].shape == (TRAINING.dim, 0)
    off = replace(TRAINING.encoder, sentence=0.0, sentence_context=0.0)
    drawn = Training(toy_corpus, replace(TRAINING, encoder=off))
    before = drawn.trainer.dense.parameters[LAYER].detach().clone()
    list(drawn.run())
    assert torch.equal(drawn.trainer.dense.parameters[LAYER], before)
    assert torch.allclose(drawn.table.rows, bare.table.rows, atol=1e-5)


def test_a_small_guide_has_sixteen_steps_an_epoch_and_a_large_one_full_batches():
    labels, rng = Ragged.from_rows([[0]] * 20_000), np.random.default_rng(0)
    for titles, steps in (
        (20_000, 40),
        (8192, MIN_STEPS),
        (2048, MIN_STEPS),
        (MIN_STEPS * MIN_TITLES // 2, MIN_STEPS // 2),
    ):
        plans = Label(batch_size=512).plan_epoch(np.arange(titles), labels, rng)
        assert len(plans) == steps and sum(len(plan.title_ids) for plan in plans) == titles
