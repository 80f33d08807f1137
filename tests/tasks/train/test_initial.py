"""Rows that start where a file of word vectors has them: where they land, and how training holds them there."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from storage.artifacts import Checkpoint
from storage.stages import Stage
from tasks.augment.fasttext.text_forms import VectorFileError, write_vectors
from tasks.augment.pretrained import Pretrained
from tasks.train.checkpoint import read_checkpoint, write_checkpoint
from tasks.train.initial import PretrainedWords
from tasks.train.loop import Training
from tasks.train.rules import SGD, Adam, RowwiseAdagrad
from tests.worlds import TRAINING

THEIRS = 24


@pytest.fixture
def file(toy_corpus: Path, tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Vectors of every other word of the toy world: the file, the words' token ids, the vectors."""
    table = pq.read_table(toy_corpus / "token_names.parquet").to_pydict()
    ids = [number for number, kind in enumerate(table["kind"]) if kind == "word"][::2]
    vectors = np.random.default_rng(4).standard_normal((len(ids), THEIRS)).astype(np.float32) @ np.diag(np.linspace(3, 0.2, THEIRS)).astype(np.float32) + 2
    write_vectors(tmp_path / "words.vec", "vec", [*(table["token"][number] for number in ids), "unheardof"], np.append(vectors, np.ones((1, THEIRS), np.float32), axis=0))
    return tmp_path / "words.vec", np.array(ids), vectors


def centred(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit - unit.mean(axis=0)


def test_known_words_start_at_their_principal_components(toy_corpus: Path, file: tuple[Path, np.ndarray, np.ndarray]):
    path, ids, vectors = file
    training = Training(toy_corpus, replace(TRAINING, initial=PretrainedWords(model=str(path))))
    rows = training.table.rows.numpy()
    left, spread, _ = np.linalg.svd(centred(vectors).astype(np.float64), full_matrices=False)
    expected = left[:, : TRAINING.dim] * spread[: TRAINING.dim]
    found = rows[ids] / np.linalg.norm(rows[ids]) * np.linalg.norm(expected)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)  # up to signs
    chance = Training(toy_corpus, TRAINING).table.rows.numpy()
    others = np.setdiff1d(np.arange(len(rows)), ids)
    np.testing.assert_array_equal(rows[others], chance[others])
    assert np.sqrt(np.mean(rows[ids] ** 2)) == pytest.approx(chance.std(), rel=1e-4)
    assert training.learner.touched.numpy()[ids].all() and training.learner.touched.sum() == len(ids)


def test_more_dimensions_than_the_file_has(toy_corpus: Path, file: tuple[Path, np.ndarray, np.ndarray]):
    path, ids, vectors = file
    wide = replace(TRAINING, dim=40)
    rows = Training(toy_corpus, replace(wide, initial=PretrainedWords(model=str(path)))).table.rows.numpy()[ids]
    expected = centred(vectors)
    found = rows[:, :THEIRS] / np.linalg.norm(rows[:, :THEIRS]) * np.linalg.norm(expected)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)  # a turn keeps every product
    np.testing.assert_array_equal(rows[:, THEIRS:], Training(toy_corpus, wide).table.rows.numpy()[ids][:, THEIRS:])


@pytest.mark.parametrize("rule", [SGD(learning_rate=0.5), RowwiseAdagrad(), Adam()], ids=lambda rule: rule.name)
def test_frozen_words_stay_to_the_bit_and_others_learn(toy_corpus: Path, file: tuple[Path, np.ndarray, np.ndarray], rule):
    path, ids, _ = file
    training = Training(toy_corpus, replace(TRAINING, rule=rule, epochs=2, initial=PretrainedWords(model=str(path), freedom=0.0)))
    before = training.table.rows.clone()
    assert len(list(training.run())) == 2
    assert torch.equal(training.table.rows[ids], before[ids])
    moved = (training.table.rows != before).any(dim=1).numpy()
    assert moved.sum() > 100 and not moved[ids].any()


def test_the_pull_is_the_gradient_of_the_squared_distance(toy_corpus: Path, file: tuple[Path, np.ndarray, np.ndarray]):
    path, ids, _ = file
    training = Training(toy_corpus, replace(TRAINING, initial=PretrainedWords(model=str(path), pull=0.7)))
    step = torch.unique(torch.cat([torch.from_numpy(ids[2:6]), torch.arange(10)]))
    rows = (training.table.rows[step] + torch.randn(len(step), TRAINING.dim, generator=torch.Generator().manual_seed(0))).requires_grad_()
    start = training.table.rows[step]
    held = torch.from_numpy(np.isin(step.numpy(), ids))
    (expected,) = torch.autograd.grad(0.35 * (rows - start)[held].square().sum(), rows)
    grad = torch.zeros_like(expected)
    training.learner.held.pull_(grad, rows.detach(), step)
    assert held.any() and not held.all()
    torch.testing.assert_close(grad, expected)


def test_a_stronger_pull_keeps_words_nearer(toy_corpus: Path, file: tuple[Path, np.ndarray, np.ndarray]):
    path, ids, _ = file
    away = []
    for pull in (0.0, 0.01, 1.0):
        training = Training(toy_corpus, replace(TRAINING, rule=SGD(learning_rate=0.5), epochs=2, initial=PretrainedWords(model=str(path), pull=pull)))
        before = training.table.rows.clone()
        list(training.run())
        away.append(float((training.table.rows - before)[ids].norm()))
    assert away[0] > away[1] > 1.5 * away[2] > 0


def test_a_resumed_run_is_the_uninterrupted_one(toy_corpus: Path, file: tuple[Path, np.ndarray, np.ndarray], tmp_path: Path):
    settings = replace(TRAINING, initial=PretrainedWords(model=str(file[0]), freedom=0.5, pull=0.1))
    whole, stopped, resumed = (Training(toy_corpus, settings) for _ in range(3))
    list(whole.run())
    next(stopped.run())
    write_checkpoint(tmp_path / "run", stopped.learner, stopped.position)
    resumed.position = read_checkpoint(tmp_path / "run", resumed.learner)
    list(resumed.run())
    assert torch.equal(whole.table.rows, resumed.table.rows) and torch.equal(whole.learner.touched, resumed.learner.touched)


def test_what_cannot_be_is_refused(toy_corpus: Path, tmp_path: Path):
    def start(model: str) -> Training:
        return Training(toy_corpus, replace(TRAINING, initial=PretrainedWords(model=model)))

    with pytest.raises(ValueError, match="names no file of word vectors"):
        start("")
    with pytest.raises(FileNotFoundError):
        start(str(tmp_path / "none.bin"))
    (tmp_path / "bad.vec").write_text("3 2\na 1 2\n")
    with pytest.raises(VectorFileError):
        start(str(tmp_path / "bad.vec"))
    write_vectors(tmp_path / "other.vec", "vec", ["слово"], np.ones((1, 3), np.float32))
    with pytest.raises(ValueError, match=r"knows none of the .* words of the corpus"):
        start(str(tmp_path / "other.vec"))


@pytest.mark.parametrize("settings", [lambda path: replace(TRAINING, initial=PretrainedWords(model=path)), lambda path: Pretrained(model=path)], ids=["train", "augment"])
def test_what_the_file_holds_makes_a_stage_run_again_not_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stage = Stage(Checkpoint, __file__)
    write_vectors(tmp_path / "a.vec", "vec", ["goal"], np.ones((1, 3), np.float32))
    (tmp_path / "b.vec").write_bytes((tmp_path / "a.vec").read_bytes())
    first = stage.key(settings(str(tmp_path / "a.vec")))
    assert stage.key(settings(str(tmp_path / "b.vec"))) == first
    write_vectors(tmp_path / "a.vec", "vec", ["goal"], np.full((1, 3), 2, np.float32))
    assert stage.key(settings(str(tmp_path / "a.vec"))) != first
