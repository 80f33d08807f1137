"""Bag encoder: the vector of a title is the normalized weighted sum of the rows of its tokens.

    v = normalize( Σ_kind  α_kind / n_kind^p · Σ_{token of that kind} row[token] )

α_kind is the weight of a kind of token. n_kind is the number of tokens of this kind in the title that have a
row. The sum is divided by n_kind^p (p is ``length_power``), so that sixty n-grams do not outweigh three
words. If the corpus has sentence vectors (tasks/sentences), each title has sentence features
x: its sentence vector plus the vector of its descriptions. A trained layer W maps x to the space of the rows:

    v = normalize( bag + β · |x| · normalize(W x) )

The weight β is smaller for a title with context tokens, such as channel and hour. |x| is larger if the
descriptions match the title. The vector of a title without tokens and without x is zero. In the code, an
entry is a token of a title.

This module computes vectors with a trained model, in NumPy. bags.py computes the same vectors in torch, with
gradients for training.
"""

import sys
from typing import Literal

import numpy as np

from storage.arrays import Ragged
from storage.bag_sums import sum_rows
from storage.shapes import Float32, Int8
from tasks.form import configurable, setting
from tasks.text.words import CONTEXT, KINDS

LAYER = "sentence"  # name of the trained parameter W
MIN_NORM = 1e-12  # smaller norms count as zero


@configurable
class Bag:
    """Strategy: bag encoder with a weight for each kind of token. A kind with weight 0 is ignored."""

    name: Literal["bag"] = "bag"
    word: float = setting(0.5, "Weight of words", ge=0)
    bigram: float = setting(0.3, "Weight of pairs of adjacent words", ge=0)
    ngram: float = setting(1.0, "Weight of character n-grams", title="Character n-grams", ge=0)
    edge: float = setting(0.3, "Weight of the first and the last word", ge=0)
    shape: float = setting(0.2, "Weight of the length and shape of a title", ge=0)
    raw: float = setting(
        0.3, "Weight of words and punctuation with their original case", title="As written", ge=0
    )
    mark: float = setting(
        0.2, "Weight of parts of a title that are not its name, such as (New)", title="Glued marks", ge=0
    )
    channel: float = setting(2.25, "Weight of the channels that air the title", ge=0)
    hour: float = setting(1.2, "Weight of the hours at which the title airs", ge=0)
    weekday: float = setting(0.45, "Weight of the weekdays on which the title airs", ge=0)
    duration: float = setting(1.2, "Weight of the durations of the airings", ge=0)
    manner: float = setting(2.25, "Weight of language, airings, sub-titles and episode numbers", ge=0)
    person: float = setting(1.0, "Weight of people in the credits", ge=0)
    country: float = setting(2.25, "Weight of countries of production", ge=0)
    date: float = setting(1.0, "Weight of the decade and the year of production", ge=0)
    rating: float = setting(2.25, "Weight of age ratings", ge=0)
    keyword: float = setting(2.25, "Weight of keywords", ge=0)
    original_language: float = setting(2.25, "Weight of the original language", ge=0)
    length: float = setting(2.25, "Weight of the length without commercials", ge=0)
    sentence: float = setting(2.0, "Weight β of the sentence vector of titles without context", ge=0)
    sentence_context: float = setting(
        0.5, "Weight β of the sentence vector of titles with airing context", ge=0
    )
    description: float = setting(1.0, "Weight of description vectors relative to sentence vectors", ge=0)
    length_power: float = setting(
        0.5,
        "The sum of a kind is divided by its number of tokens to this power; 0: sum, 1: mean",
        ge=0,
        le=1,
    )
    nearest_slot: float = setting(
        0.0,
        "Weight of the key of the nearest memory slot (objective rare_memory), which is appended to a title "
        "vector and doubles its dimensions; 0: no key",
        ge=0,
    )

    def kind_weights(self) -> Float32[np.ndarray, " kinds"]:
        """Returns the weight α of each kind of token, in the order of tasks.text.words.KINDS."""
        return np.array([getattr(self, kind) for kind in KINDS], dtype=np.float32)

    def parameters(self, feature_count: int, dim: int) -> dict[str, tuple[int, int]]:
        """Returns the name and shape of the trained layer W. Without sentence vectors, W has no columns."""
        return {LAYER: (dim, feature_count)}

    def sentence_features(
        self, sentences: np.ndarray, descriptions: np.ndarray
    ) -> Float32[np.ndarray, "titles features"]:
        """Returns the sentence features x of titles: sentence vectors plus weighted description vectors."""
        return widen(sentences) + np.float32(self.description) * widen(descriptions)

    def entry_weights(
        self, tokens: Ragged, kinds: Int8[np.ndarray, " entries"]
    ) -> Float32[np.ndarray, " entries"]:
        """Returns the weight of each entry (token of a title): α_kind / n_kind^length_power.

        n_kind is the number of tokens of the same kind in the title.
        """
        alpha = self.kind_weights()
        cells = tokens.row_ids * len(alpha) + kinds
        counts = np.bincount(cells, minlength=len(tokens) * len(alpha)).astype(np.float32)
        return counts[cells] ** np.float32(-self.length_power) * alpha[kinds]

    def encode(
        self,
        rows: Float32[np.ndarray, "unique dim"],
        tokens: Ragged,
        kinds: Int8[np.ndarray, " entries"],
        features: Float32[np.ndarray, "titles features"],
        layer: Float32[np.ndarray, "dim features"] | None = None,
    ) -> Float32[np.ndarray, "titles dim"]:
        """Computes the unit-norm vectors of titles. The vector of a title without tokens and x is zero.

        Args:
            rows: Embedding rows of the distinct tokens of all titles.
            tokens: For each title, the position in ``rows`` of each of its tokens.
            kinds: Kind of each token of each title.
            features: Sentence features x of each title; zero if it has none.
            layer: Trained layer W; None: the sentence features are ignored.
        """
        bag = _unit(sum_rows(rows, tokens.values, tokens.offsets, self.entry_weights(tokens, kinds)))
        if layer is None or not features.shape[1]:
            return bag
        return _unit(bag + self.sentence_part(tokens, kinds, features, layer))

    def sentence_part(
        self,
        tokens: Ragged,
        kinds: Int8[np.ndarray, " entries"],
        features: Float32[np.ndarray, "titles features"],
        layer: Float32[np.ndarray, "dim features"],
    ) -> Float32[np.ndarray, "titles dim"]:
        """Returns the sentence part of the vector of each title: β · |x| · normalize(W x)."""
        has_context = np.bincount(tokens.row_ids, weights=kinds >= CONTEXT, minlength=len(tokens)) > 0
        beta = np.where(has_context, self.sentence_context, self.sentence).astype(np.float32)[:, None]
        return beta * np.linalg.norm(features, axis=1, keepdims=True) * _unit(features @ layer.T)


def widen(rows: np.ndarray) -> np.ndarray:
    """Converts a float16 array to float32.

    If torch is loaded, it converts the array. Training converts every batch, which takes 0.02 ms with torch
    and 0.43 ms with NumPy for 512 titles.
    """
    if (torch := sys.modules.get("torch")) is None:
        return rows.astype(np.float32)
    rows = rows if rows.flags.writeable else rows.copy()  # torch warns about read-only arrays
    return torch.from_numpy(rows).float().numpy()


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms < MIN_NORM, np.inf, norms).astype(vectors.dtype)
