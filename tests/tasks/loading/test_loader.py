"""Batches do not depend on the number of workers, and workers receive little data."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from storage.formats.corpus import open_corpus
from tasks.loading.loader import BatchLoader, choose_loading_workers
from tasks.pool_settings import AUTOMATIC
from tasks.text.words import CONTEXT
from tasks.train.objectives import Label, LeaveOneOutSoftmax

GB = 10**9


def loader(corpus: Path, **changes) -> BatchLoader:
    return BatchLoader(
        corpus, LeaveOneOutSoftmax(pack=4, packs=10), **({"dropout": 0.4, "seed": 1, "workers": 0} | changes)
    )


def flat(batches) -> list[torch.Tensor]:
    return [tensor for batch in batches for part in batch for tensor in part]


def test_an_epoch_contains_every_training_title_once(toy_corpus: Path):
    count, batches = loader(toy_corpus, dropout=0.0).epoch(0)
    made = list(batches)
    assert len(made) == count
    assert sum(len(batch.bags.offsets) - 1 for batch in made) == len(open_corpus(toy_corpus).training)


def test_randomness_depends_on_seed_and_epoch(toy_corpus: Path):
    first, again = (flat(loader(toy_corpus).epoch(3)[1]) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    used = loader(toy_corpus)
    list(used.epoch(0)[1])
    assert all(
        torch.equal(one, other) for one, other in zip(first, flat(used.epoch(3)[1]), strict=True)
    )  # whatever was loaded before
    for other in (flat(loader(toy_corpus).epoch(4)[1]), flat(loader(toy_corpus, seed=2).epoch(3)[1])):
        assert len(other) != len(first) or any(
            not torch.equal(one, two) for one, two in zip(first, other, strict=True)
        )


def test_dropout_omits_a_share_of_the_entries_of_the_text(toy_corpus: Path):
    def entries(dropout: float) -> np.ndarray:
        """Returns the token entries of titles, and those of their airing contexts."""
        of_context = np.concatenate(
            [batch.bags.kinds >= CONTEXT for batch in loader(toy_corpus, dropout=dropout).epoch(0)[1]]
        )
        return np.bincount(of_context, minlength=2)

    whole, part = entries(0.0), entries(0.4)
    assert whole.sum() == open_corpus(toy_corpus).tokens.take(open_corpus(toy_corpus).training).offsets[-1]
    assert abs(part[0] / whole[0] - 0.6) < 0.02 and part[1] == whole[1] > 0


def test_targets_state_which_titles_have_context(toy_corpus: Path):
    told = []
    for batch in BatchLoader(
        toy_corpus, Label(batch_size=50), dropout=0.4, context_dropout=0.5, seed=1, workers=0
    ).epoch(0)[1]:
        in_context = torch.zeros(len(batch.bags.offsets) - 1, dtype=torch.bool)
        in_context[batch.bags.entry_titles[batch.bags.kinds >= CONTEXT]] = True
        assert torch.equal(batch.targets.aired, in_context)
        told += in_context.tolist()
    assert 0.3 < sum(told) / len(told) < 0.7


def test_data_sent_to_a_worker_are_small(toy_corpus: Path):
    """A pickled memory map would ship its whole data: the dataset goes by its path, opened or not."""
    made = loader(toy_corpus)
    fresh = len(pickle.dumps(made._batches))
    next(made.epoch(0)[1])
    assert len(pickle.dumps(made._batches)) == fresh < 2000
    assert open_corpus(toy_corpus).tokens.values.nbytes > 20 * fresh
    again = pickle.loads(pickle.dumps(made._batches))
    assert again._opened is None and again.folder == toy_corpus


def test_context_is_dropped_completely_or_not_at_all(toy_corpus: Path):
    def shares(context_dropout: float) -> list[bool]:
        _, batches = loader(toy_corpus, dropout=0.0, context_dropout=context_dropout).epoch(0)
        return [
            bool((batch.bags.kinds[batch.bags.entry_titles == title] >= CONTEXT).any())
            for batch in batches
            for title in range(len(batch.bags.offsets) - 1)
        ]

    assert all(shares(0.0)) and not any(shares(1.0))
    half = shares(0.5)
    assert 0.3 < sum(half) / len(half) < 0.7


def test_any_batch_can_be_the_first(toy_corpus: Path):
    count, whole = loader(toy_corpus).epoch(2)
    made = list(whole)
    for first in (1, count - 1, count):
        again = loader(toy_corpus)
        list(again.epoch(1)[1])
        assert again.epoch(2, first)[0] == count
        rest = list(again.epoch(2, first)[1])
        assert len(rest) == count - first
        assert all(torch.equal(one, other) for one, other in zip(flat(made[first:]), flat(rest), strict=True))


def test_corpora_that_fit_in_memory_are_loaded_in_this_process(
    toy_corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    assert loader(toy_corpus, workers=AUTOMATIC).workers == 0
    monkeypatch.setattr("tasks.loading.loader.free_memory", lambda: 1000)
    monkeypatch.setattr("tasks.loading.loader.cores", lambda: 3)
    assert loader(toy_corpus, workers=AUTOMATIC).workers == 2


def test_one_core_and_two_give_the_same_batches(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch):
    """Made when asked for, and by a thread ahead: the same bits."""
    made = []
    for number in (1, 2):
        monkeypatch.setattr("tasks.loading.delivery.cores", lambda number=number: number)
        made.append(flat(loader(toy_corpus).epoch(0)[1]))
    assert len(made[0]) == len(made[1]) > 14 and all(
        torch.equal(one, other) for one, other in zip(*made, strict=True)
    )


@pytest.mark.parametrize(
    ("corpus", "free", "cores", "expected"),
    [
        (10_000_000, 8 * GB, 2, 0),  # a night of four guides: in this process
        (4 * GB, 8 * GB, 8, 0),
        (4 * GB + 1, 8 * GB, 2, 1),  # does not fit
        (40 * GB, 8 * GB, 4, 3),
        (40 * GB, 8 * GB, 64, 4),
        (40 * GB, 8 * GB, 1, 0),  # no core to spare
    ],
)
def test_number_of_workers(corpus: int, free: int, cores: int, expected: int):
    assert choose_loading_workers(corpus_bytes=corpus, free_bytes=free, cores=cores) == expected
