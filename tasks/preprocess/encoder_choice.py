"""Chooses the sentence encoder of a guide: the slower e5 only if it predicts categories better than use.

e5 is tried if enough titles have a language code that is not one of the languages of use, or no code.
A sample of the labelled training titles is divided into folds by franchise. With the vectors of each encoder,
which are not trained, the k nearest titles in other folds predict the category of each title. Held-out titles
are not used. All texts of a guide get vectors of one encoder, because vectors of different encoders are not
comparable.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from storage.arrays import Ragged
from storage.sentences import SentenceStore, text_keys
from tasks.neighbours.similarity import top_neighbours
from tasks.sentences import MultilingualE5, SentenceEncoderMissing, SentenceStrategy, UniversalSentenceEncoder
from tasks.sentences.encoding import encode_new

SAMPLE_TITLES = 2000  # e5 encodes 2,000 titles in about five seconds on two cores
USE_LANGUAGES = {"ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"}
MIN_OTHER_SHARE = 0.1  # minimum share of titles in other or unknown languages for which e5 is tried
MIN_TITLES = 1000  # with fewer titles, the gain cannot be distinguished from chance
FOLDS = 5
NEIGHBOURS = 10
STANDARD_ERRORS = 2.0  # minimum gain in accuracy of e5, in standard errors (clustered by franchise)


def choose_encoder(
    home: Path,
    titles: list[str],
    languages: Sequence[str | None],
    labels: Ragged,
    family_hash: np.ndarray,
) -> tuple[SentenceStrategy, str]:
    """Chooses e5 if it is installed and its gain in accuracy over use exceeds two standard errors, else use.

    Args:
        home: The home folder, which contains the stored vectors of each encoder.
        titles: Training titles, each with at least one label.
        languages: Language code of each title in the feed; None if the feed has none.
        labels: Label ids of each title.
        family_hash: Hash of the franchise of each title, a number in [0, 1).

    Returns:
        The encoder and the reason.
    """
    default, alternative = UniversalSentenceEncoder(), MultilingualE5()
    if len(titles) < MIN_TITLES:
        return (
            default,
            f"sentence encoder use: {len(titles)} labelled titles, e5 is tried from {MIN_TITLES} titles on",
        )
    codes = [re.split("[-_]", code or "")[0].lower() for code in languages]
    other_share = np.mean([code not in USE_LANGUAGES for code in codes])
    if other_share < MIN_OTHER_SHARE:
        return (
            default,
            f"sentence encoder use: it supports the languages of {1 - other_share:.0%} of the titles",
        )
    try:
        alternative.open()
    except SentenceEncoderMissing:
        return default, "sentence encoder use: e5 is not installed (pip install 'guidespace[e5]')"
    sample = np.argsort(family_hash, kind="stable")[:SAMPLE_TITLES]
    families = np.unique(family_hash[sample], return_inverse=True)[1]
    texts = [titles[row] for row in sample]
    is_label = labels.take(sample).multi_hot(int(labels.values.max()) + 1)
    default_correct, alternative_correct = (
        _mark_correct_predictions(_encode_texts(home, strategy, texts), is_label, families % FOLDS)
        for strategy in (default, alternative)
    )
    gain = alternative_correct - default_correct
    error = float(np.sqrt((np.bincount(families, gain - gain.mean()) ** 2).sum()) / len(gain))
    encoder = alternative if gain.mean() > STANDARD_ERRORS * error else default
    accuracies = f"use {default_correct.mean():.3f}, e5 {alternative_correct.mean():.3f}"
    return encoder, (
        f"sentence encoder {encoder.name}: accuracy on {len(sample)} training titles {accuracies} "
        f"(standard error of the gain {error:.3f})"
    )


def _encode_texts(home: Path, strategy: SentenceStrategy, texts: Sequence[str]) -> np.ndarray:
    encoder = strategy.open()
    assert encoder is not None
    store = SentenceStore(home, encoder.identity, encoder.dim)
    for _ in encode_new(store, strategy, lambda: [texts]):
        pass
    return store.take(text_keys(texts)).astype(np.float32)


def _mark_correct_predictions(vectors: np.ndarray, is_label: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Returns 1.0 for each title whose predicted label is one of its labels, else 0.0.

    The prediction is the label with the largest sum of 1 + cosine over the neighbours that have this label.
    """
    correct = np.zeros(len(vectors))
    for fold in np.unique(folds):
        test_rows, training_rows = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if not len(training_rows):
            continue
        ids, cosines = top_neighbours(vectors[test_rows], vectors[training_rows], NEIGHBOURS)
        weights = np.where(ids >= 0, 1 + cosines, 0)
        votes = np.einsum("tk,tkl->tl", weights, is_label[training_rows][ids])
        correct[test_rows] = is_label[test_rows, votes.argmax(axis=1)]
    return correct
