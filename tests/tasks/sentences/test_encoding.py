"""Encoding of new texts into the store, in this process or in several."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from storage.artifacts import Progress
from storage.sentences import SentenceStore, text_keys
from tasks.pool_settings import PoolSettings
from tasks.sentences import UniversalSentenceEncoder, encoding
from tasks.sentences.encoding import encode_new
from tests.workers import POOLS, kill_a_worker, skip_without

USE = UniversalSentenceEncoder()
TEXTS = [f"{word} number {number}" for number in range(30) for word in ("News", "Football", "Cookery")]


def opened(home: Path) -> SentenceStore:
    return SentenceStore(home, USE.open().identity, 512)


def in_batches(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (texts[begin : begin + size] for begin in range(0, len(texts), size))


def run(store: SentenceStore, texts: Sequence[str], size: int = 7) -> list[Progress]:
    return list(encode_new(store, USE, lambda: in_batches(texts, size)))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "PIECE_TEXTS", 20)


def test_each_text_is_encoded_once_piece_by_piece(tmp_path: Path):
    store = opened(tmp_path)
    events = run(store, [*TEXTS, *TEXTS])
    assert [event.step for event in events] == [0, 20, 40, 60, 80, 90] and events[0].total == 90
    assert "90 new texts" in events[0].note and len(list(store.folder.glob("*.npy"))) == 5
    np.testing.assert_allclose(store.take(text_keys(TEXTS)), USE.open().encode(TEXTS), atol=1e-3)
    assert run(store, TEXTS) == run(store, []) == []


def test_an_interrupted_run_is_resumed(tmp_path: Path):
    for event in encode_new(opened(tmp_path), USE, lambda: in_batches(TEXTS, 11)):
        if event.step == 40:
            break
    assert run(opened(tmp_path), TEXTS)[0].total == 50


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_two_workers_write_the_same_store_even_if_one_is_killed(tmp_path: Path, pool):
    skip_without(pool)
    here, apart = opened(tmp_path / "here"), opened(tmp_path / "apart")
    run(here, TEXTS)
    events = []
    settings = PoolSettings(workers=2, pool=pool)
    for event in encode_new(apart, USE, lambda: in_batches(TEXTS, 7), settings):
        if event.step and len(events) == 1:
            kill_a_worker()
        events.append(event)
    assert [event.step for event in events][-1] == 90 and len(events) == 6
    files = [sorted(file.name for file in store.folder.glob("*.npy")) for store in (here, apart)]
    assert files[0] == files[1]  # a name contains the checksum
    np.testing.assert_array_equal(here.take(text_keys(TEXTS)), apart.take(text_keys(TEXTS)))


def test_many_new_texts_are_encoded_by_one_process_per_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(encoding, "MIN_PARALLEL_CHARACTERS", 1)
    monkeypatch.setattr(encoding, "cores", lambda: 2)
    events = encode_new(opened(tmp_path), USE, lambda: in_batches(TEXTS, 7))
    assert "in 2 processes" in next(events).note
