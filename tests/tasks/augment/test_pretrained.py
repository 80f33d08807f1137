"""N-gram rows of a file, mapped: what the map should be is known, since the file is made from the space."""

from pathlib import Path

import numpy as np
import pytest

from storage.artifacts import Checkpoint
from storage.stages import Stage
from tasks.augment.pretrained import Pretrained
from tasks.fasttext import FastText, FastTextError
from tasks.fasttext.layout import Header
from tasks.fasttext.ngrams import bucket_ids
from tasks.fasttext.text_forms import write_vectors
from tasks.fasttext.writer import write_bin

WORDS = [
    "kitchen",
    "kitchens",
    "baker",
    "bakery",
    "goal",
    "goals",
    "goalie",
    "murder",
    "murders",
    "detective",
    "inspector",
    "league",
    "stadium",
    "penalty",
]
DIM, THEIRS, BUCKETS = 6, 9, 800


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A file whose n-gram rows are those of our space, turned into nine dimensions; and our words' rows, a
    sum of theirs."""
    rng = np.random.default_rng(0)
    grams = rng.standard_normal((BUCKETS, DIM)).astype(np.float32)
    ids = bucket_ids(WORDS, 3, 5, BUCKETS)
    rows = np.stack([grams[ids[word]].mean(axis=0) for word in range(len(WORDS))])
    turn = rng.standard_normal((DIM, THEIRS)).astype(np.float32)
    header = Header(dim=THEIRS, bucket=BUCKETS, minn=3, maxn=5)
    entries = [(b"kitchen", 2), (b"kitchenette", 1)]
    write_bin(
        tmp_path / "model.bin",
        header,
        entries,
        [np.zeros((2, THEIRS), dtype=np.float32), grams @ turn],
        [np.zeros((2, THEIRS), dtype=np.float32)],
    )
    return tmp_path / "model.bin", rows


def test_mapped_rows_are_the_least_squares_map(world: tuple[Path, np.ndarray]):
    file, rows = world
    found = Pretrained(model=str(file), map_ridge=1e-6).fit(WORDS, rows, np.arange(len(WORDS)))
    model = FastText.open(file)
    ids = bucket_ids(WORDS, 3, 5, BUCKETS)
    sources = np.stack([model.matrix.take(ids[word] + 2).mean(axis=0) for word in range(len(WORDS))]).astype(
        np.float64
    )
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected, *_ = np.linalg.lstsq(sources, unit - unit.mean(axis=0), rcond=1e-6)
    np.testing.assert_allclose(found.rows, model.matrix.take(found.bucket_ids + 2) @ expected, atol=2e-3)
    assert found.rows.shape[1] == DIM and (found.shortest, found.longest, found.buckets) == (3, 5, BUCKETS)


def test_words_never_seen_lie_near_their_family(world: tuple[Path, np.ndarray]):
    file, rows = world
    found = Pretrained(model=str(file)).fit(WORDS, rows, np.arange(len(WORDS)))
    vectors, known = found.vectors(["kitchenette", "goalies", "zzzzz"])
    assert known.tolist()[:2] == [True, True] and np.linalg.norm(vectors[0]) == pytest.approx(
        found.norm, rel=1e-5
    )
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    nearest = (vectors[:2] @ unit.T).argmax(axis=1)
    assert WORDS[nearest[0]].startswith("kitchen") and WORDS[nearest[1]].startswith("goal")


def test_ngrams_of_the_files_own_words_are_kept(world: tuple[Path, np.ndarray]):
    file, rows = world
    few, more = (
        Pretrained(model=str(file), vocabulary=number).fit(WORDS, rows, np.arange(len(WORDS))).bucket_ids
        for number in (0, 2)
    )
    assert set(bucket_ids(["kitchenette"], 3, 5, BUCKETS).values) <= set(more) and set(few) < set(more)


def test_what_cannot_be_is_refused(world: tuple[Path, np.ndarray], tmp_path: Path):
    _, rows = world
    ones = np.ones(len(WORDS), dtype=np.int64)
    with pytest.raises(ValueError, match="names no fastText model"):
        Pretrained().fit(WORDS, rows, ones)
    (tmp_path / "bad.bin").write_bytes(bytes(90))
    with pytest.raises(FastTextError, match="at byte"):
        Pretrained(model=str(tmp_path / "bad.bin")).fit(WORDS, rows, ones)
    with pytest.raises(ValueError, match="trained words have an n-gram of"):
        Pretrained(model=str(world[0])).fit([""], rows[:1], ones[:1])


def test_a_model_without_ngrams_is_refused(trained_without: Path, world: tuple[Path, np.ndarray]):
    with pytest.raises(ValueError, match="has no n-grams"):
        Pretrained(model=str(trained_without)).fit(WORDS, world[1], np.ones(len(WORDS), dtype=np.int64))


@pytest.fixture
def trained_without(tmp_path: Path) -> Path:
    header = Header(dim=2, bucket=0, minn=0, maxn=0)
    write_bin(
        tmp_path / "plain.bin",
        header,
        [(b"a", 1)],
        [np.zeros((1, 2), dtype=np.float32)],
        [np.zeros((1, 2), dtype=np.float32)],
    )
    return tmp_path / "plain.bin"


def test_what_the_file_holds_makes_a_stage_run_again_not_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stage = Stage(Checkpoint, __file__)
    write_vectors(tmp_path / "a.vec", "vec", ["goal"], np.ones((1, 3), np.float32))
    (tmp_path / "b.vec").write_bytes((tmp_path / "a.vec").read_bytes())
    first = stage.key(Pretrained(model=str(tmp_path / "a.vec")))
    assert stage.key(Pretrained(model=str(tmp_path / "b.vec"))) == first
    write_vectors(tmp_path / "a.vec", "vec", ["goal"], np.full((1, 3), 2, np.float32))
    assert stage.key(Pretrained(model=str(tmp_path / "a.vec"))) != first
