"""Batches: the same for any number of workers, and cheap to send to one."""

import pickle
from pathlib import Path

import numpy as np
import torch

from tasks.preprocess.corpus import _Chunks, open_corpus, token_ids
from tasks.preprocess.loader import BatchLoader
from tasks.tokenize.words import CONTEXT, WordsAndNgrams
from tasks.train.objectives import LeaveOneOutSoftmax


def loader(corpus: Path, **changes) -> BatchLoader:
    return BatchLoader(corpus, LeaveOneOutSoftmax(pack=4, packs=10), **({"dropout": 0.4, "seed": 1, "workers": 0} | changes))


def flat(batches) -> list[torch.Tensor]:
    return [tensor for batch in batches for part in batch for tensor in part]


def test_an_epoch_shows_every_training_title_once(toy_corpus: Path):
    count, batches = loader(toy_corpus, dropout=0.0).epoch(0)
    made = list(batches)
    assert len(made) == count
    assert sum(len(batch.bags.offsets) - 1 for batch in made) == len(open_corpus(toy_corpus).training)


def test_chance_belongs_to_seed_and_epoch(toy_corpus: Path):
    first, again = (flat(loader(toy_corpus).epoch(3)[1]) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    used = loader(toy_corpus)
    list(used.epoch(0)[1])
    assert all(torch.equal(one, other) for one, other in zip(first, flat(used.epoch(3)[1]), strict=True))  # whatever was loaded before
    for other in (flat(loader(toy_corpus).epoch(4)[1]), flat(loader(toy_corpus, seed=2).epoch(3)[1])):
        assert len(other) != len(first) or any(not torch.equal(one, two) for one, two in zip(first, other, strict=True))


def test_dropout_leaves_out_its_share(toy_corpus: Path):
    entries = {share: sum(len(batch.bags.tokens) for batch in loader(toy_corpus, dropout=share).epoch(0)[1]) for share in (0.0, 0.4)}
    assert entries[0.0] == open_corpus(toy_corpus).tokens.take(open_corpus(toy_corpus).training).offsets[-1]
    assert abs(entries[0.4] / entries[0.0] - 0.6) < 0.02


def test_what_is_sent_to_a_worker_is_small(toy_corpus: Path):
    """A pickled memory map would ship its whole data: the dataset goes by its path, opened or not."""
    made = loader(toy_corpus)
    fresh = len(pickle.dumps(made._dataset))
    next(made.epoch(0)[1])
    assert len(pickle.dumps(made._dataset)) == fresh < 2000
    assert open_corpus(toy_corpus).tokens.values.nbytes > 20 * fresh
    again = pickle.loads(pickle.dumps(made._dataset))
    assert again._open is None and again.folder == toy_corpus


def test_chunks_cover_every_title_once():
    titles = [f"Maus {number}" for number in range(23)] + [""]
    ids = {(0, "maus"): 0}
    chunks = list(token_ids(titles, WordsAndNgrams(), ids, chunk=5, workers=0))
    assert [len(lengths) for lengths, _, _ in chunks] == [5, 5, 5, 5, 4]
    lengths, values, oov = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    assert lengths.tolist() == [1] * 23 + [0] and values.tolist() == [0] * 23 and oov.tolist() == [True] * 23 + [False]
    assert len(_Chunks([], WordsAndNgrams(), {}, 5)) == 0


def test_context_is_left_out_whole_or_not_at_all(toy_corpus: Path):
    def shares(context_dropout: float) -> list[bool]:
        _, batches = loader(toy_corpus, dropout=0.0, context_dropout=context_dropout).epoch(0)
        return [bool((batch.bags.kinds[batch.bags.titles == title] >= CONTEXT).any()) for batch in batches for title in range(len(batch.bags.offsets) - 1)]

    assert all(shares(0.0)) and not any(shares(1.0))
    half = shares(0.5)
    assert 0.3 < sum(half) / len(half) < 0.7
