"""Contract of every strategy of augment: fitted to trained words, it computes vectors of others."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow.parquet as pq
import pytest

from flows.settings import Settings
from tasks.augment.distilled import Distilled
from tasks.augment.nothing import NoNgramRows
from tasks.augment.settings import AugmentSettings
from tasks.augment.stems import Stems
from tasks.encoder.fasttext_export import export_bin
from tasks.encoder.title_encoder import TitleEncoder
from tasks.encoder.unseen_words import UnseenWords
from tasks.optimizers import Adam
from tasks.overrides import SettingError, override

FAMILIES = ["kitchen", "baker", "murder", "detective", "harbour", "penalty"]
WORDS = [family + ending for family in FAMILIES for ending in ("", "s", "ing", "ed")]
UNSEEN = [family + "er" for family in FAMILIES]


def rows(dim: int = 8) -> np.ndarray:
    """Makes vectors: words of one family have a common direction, plus a part of their own."""
    rng = np.random.default_rng(0)
    own = np.repeat(np.eye(dim)[: len(FAMILIES)] * 3, 4, axis=0)
    return (own + rng.normal(size=own.shape) * 0.2).astype(np.float32)


STRATEGIES: dict[type, Callable[[Path], Any]] = {
    Distilled: lambda folder: Distilled(),
    Stems: lambda folder: Stems(epochs=25, batch_size=12, hidden=24, optimizer=Adam(learning_rate=0.01)),
}


@pytest.fixture(scope="module", params=STRATEGIES, ids=lambda kind: kind().name)
def strategy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return STRATEGIES[request.param](tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def fitted(strategy: Any) -> UnseenWords:
    return fit(strategy)


def fit(strategy: Any) -> UnseenWords:
    return strategy.fit(WORDS, rows(), np.arange(len(WORDS)))


def test_every_strategy_is_tested():
    family = set(get_args(get_type_hints(AugmentSettings)["strategy"]))
    assert set(STRATEGIES) == family - {NoNgramRows}


def test_without_rows_no_word_gets_a_vector():
    vectors, known = fit(NoNgramRows()).vectors(UNSEEN)
    assert not known.any() and not vectors.any() and vectors.shape == (len(UNSEEN), 8)


def test_an_unseen_word_gets_a_finite_vector_of_a_trained_words_length(fitted: UnseenWords):
    vectors, known = fitted.vectors(UNSEEN)
    assert vectors.shape == (len(UNSEEN), 8) and vectors.dtype == np.float32
    assert known.all() and np.isfinite(vectors).all()
    norms, trained = (np.linalg.norm(own, axis=1) for own in (vectors, rows()))
    np.testing.assert_allclose(norms, norms[0], rtol=1e-5)
    assert trained.min() <= norms[0] <= trained.max()


def test_an_unseen_word_is_nearest_to_its_family(fitted: UnseenWords):
    vectors, _ = fitted.vectors(UNSEEN)
    own = (vectors.argmax(axis=1) == np.arange(len(FAMILIES))).mean()
    assert own >= 0.8


def test_a_word_without_known_ngrams_has_no_vector(fitted: UnseenWords):
    vectors, known = fitted.vectors(["☃ꙮ☃ꙮ☃", "", "kitchener"])
    assert known.tolist() == [False, False, True] and not vectors[:2].any()
    vectors, known = fitted.vectors([])
    assert vectors.shape == (0, 8) and known.shape == (0,)


def test_vectors_do_not_depend_on_other_words(fitted: UnseenWords):
    together = fitted.vectors(UNSEEN)[0]
    alone = np.concatenate([fitted.vectors([word])[0] for word in UNSEEN])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_one_seed_one_result(strategy: Any, fitted: UnseenWords):
    np.testing.assert_array_equal(fit(strategy).vectors(UNSEEN)[0], fitted.vectors(UNSEEN)[0])


def test_the_title_encoders_folder_gives_the_same_bits_without_a_stemmer(
    strategy: Any, learnt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, _, vocabulary, *_, made = learnt
    encoder = TitleEncoder.open(home / made.path)
    own = strategy.fit(WORDS, rows(encoder.dim), np.arange(len(WORDS)))
    encoder = dataclasses.replace(encoder, unseen_words=own)
    encoder.save(tmp_path, home / vocabulary.path / "tokens.parquet")
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    again = TitleEncoder.open(tmp_path)
    assert type(again.unseen_words) is type(own) and again.unseen_words.size == own.size > 0
    for one, other in zip(again.unseen_words.vectors(UNSEEN), own.vectors(UNSEEN), strict=True):
        np.testing.assert_array_equal(one, other)
    titles = ["Harbour kitchener", "Detectives", "Xyzzy"]
    np.testing.assert_array_equal(again.embed(titles), encoder.embed(titles))


def test_no_word_is_refused(strategy: Any):
    with pytest.raises(ValueError) as raised:
        strategy.fit([], np.zeros((0, 8), np.float32), np.zeros(0, np.int64))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("language=klingon", "english"),
        ("margin=0", "greater than 0"),
        ("cell=transformer", "gru"),
        ("dropout=1", "less than 1"),
        ("epochs=0", "greater than or equal to 1"),
        ("stemmer=porter", "stemmer"),
    ],
)
def test_bad_settings_are_refused_in_one_line(assignment: str, expected: str):
    with pytest.raises(SettingError, match=expected) as raised:
        override(Settings(), ["augment.strategy=stems", f"augment.strategy.{assignment}"])
    assert "\n" not in str(raised.value)


def test_export_to_fasttext_refuses_stems(learnt: Any, tmp_path: Path):
    home, *_, made = learnt
    encoder = TitleEncoder.open(home / made.path)
    stems = dataclasses.replace(encoder, unseen_words=fit(STRATEGIES[Stems](tmp_path)))
    frequency = pq.read_table(home / made.path / "tokens.parquet")["document_frequency"].to_numpy()
    with pytest.raises(ValueError, match=r"come from stems.*augment\.strategy=distilled"):
        export_bin(stems, frequency, tmp_path / "model.bin")
