"""Represents unseen words with a character encoder that gives words with the same stem similar vectors.

A training batch has two words of each stem, called partners. If a stem has only one word, the word occurs
twice, with different dropout masks. Partners should be closer to each other than to the nearest word of
another stem:

    loss = mean of max(0, margin − cos(word, partner) + cos(word, nearest word of another stem))

The vector of an unseen word is the mean of the rows of those trained words whose encoder vectors are nearest
to its encoder vector. A linear map from the encoder's vectors to the trained rows, as for a fastText model,
scores lower (docs/log). Only training needs stems; the published encoder contains no stemmer.

References:
    Porter. Snowball: A language for stemming algorithms. 2001. https://snowballstem.org.
    Hermans, Beyer, Leibe. In Defense of the Triplet Loss for Person Re-Identification. 2017, equation 5
    (batch hard). https://arxiv.org/abs/1703.07737. We differ: the positive is a random partner, not the
    farthest.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from storage.arrays import offsets_of, unit_rows
from storage.lazy import Tensor, functional, torch
from tasks.augment.ridge import compute_targets
from tasks.encoder.unseen_words import NearestWords
from tasks.form import configurable, setting
from tasks.recurrent.alphabet import Alphabet
from tasks.recurrent.encoder import CharacterEncoder, Recurrent
from tasks.recurrent.training import RecurrentTraining, RecurrentTrainingSettings

Language = Literal[
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english",
    "esperanto", "estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian",
    "irish", "italian", "lithuanian", "nepali", "norwegian", "persian", "polish", "porter", "portuguese",
    "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish",
]  # fmt: skip


@configurable
class Stems(RecurrentTrainingSettings, Recurrent):
    """Strategy: an unseen word gets the mean row of the nearest trained words by a character encoder."""

    name: Literal["stems"] = "stems"
    language: Language = setting("english", "Language of the stemmer (package snowballstemmer)")
    margin: float = setting(
        0.3, "Margin by which words with the same stem must be closer than words of other stems", gt=0, le=2
    )
    hidden: int = setting(64, "Number of dimensions of the encoder's state", ge=1, le=4096)
    batch_size: int = setting(512, "Number of words in a batch, two of each stem", ge=4)
    most_words: int = setting(
        20_000, "Number of the most frequent words, on which the encoder is trained", ge=2
    )
    neighbours: int = setting(20, "Number of trained words whose rows are averaged for an unseen word", ge=1)

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NearestWords:
        """Trains the character encoder, and returns a model that computes vectors of unseen words with it.

        Args:
            words: Words that have a trained embedding row.
            rows: Embedding row of each word, float32 (words, dim).
            document_frequency: Number of training titles with each word.
        """
        if not len(words):
            raise ValueError(
                "there are no trained words, on which the encoder can be trained; read more feeds"
            )
        frequent_rows = np.argsort(-document_frequency, kind="stable")[: self.most_words]
        encoder = self.train([words[int(row)] for row in frequent_rows])
        centred_rows, mean, norm = compute_targets(rows, document_frequency)
        return NearestWords(
            encoder=encoder,
            neighbours=self.neighbours,
            word_vectors=unit_rows(encoder.vectors(words)),
            rows=centred_rows,
            mean=mean,
            norm=norm,
        )

    def train(self, words: Sequence[str]) -> CharacterEncoder:
        """Trains the encoder on words, on a GPU if available; returns the encoder on the CPU."""
        encoder = CharacterEncoder(self, Alphabet.from_strings(words), seed=self.seed)
        encoder.to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        strings, pairs = encoder.alphabet.ids(words), StemPairs(find_stems(words, self.language))

        def batches(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, None]]:
            return ((words, None) for words in pairs.batches(rng, self.batch_size // 2))

        def loss(vectors: Tensor, _: None) -> Tensor:
            return triplet_loss(vectors, self.margin)

        for _ in RecurrentTraining(encoder, strings, batches, loss, self).run():
            pass
        return encoder.to(torch.device("cpu"))


def find_stems(words: Sequence[str], language: Language) -> np.ndarray:
    """Returns the id of each word's stem: int64 (words,), from 0."""
    import snowballstemmer  # imported here, because a trained encoder does not need it

    stems = snowballstemmer.stemmer(language).stemWords(words)
    return np.unique(stems, return_inverse=True)[1]


class StemPairs:
    """Draws batches with two words of each stem. ``stems`` are the stem ids of all words, from 0."""

    def __init__(self, stems: np.ndarray) -> None:
        self._words, self._counts = np.argsort(stems, kind="stable"), np.bincount(stems)
        self._first_positions = offsets_of(self._counts)[:-1]

    def batches(self, rng: np.random.Generator, pairs: int) -> Iterator[np.ndarray]:
        """Yields batches of word ids, int64 (2 · stems,): one word of each stem, then the words' partners.

        A batch has ``pairs`` stems; the last batch of an epoch may have fewer.
        """
        order = rng.permutation(len(self._counts))
        for start in range(0, len(order), pairs):
            stem_ids = order[start : start + pairs]
            counts = self._counts[stem_ids]
            members = rng.integers(counts)
            partners = (members + rng.integers(1, np.maximum(counts, 2))) % counts
            first_positions = np.tile(self._first_positions[stem_ids], 2)
            yield self._words[first_positions + np.concatenate([members, partners])]


def triplet_loss(vectors: Tensor, margin: float) -> Tensor:
    """Computes the triplet loss of a batch of StemPairs; it is 0 if the batch has only one stem.

    ``vectors`` are the encoder's vectors of the words, (2 · stems, hidden).
    """
    unit_vectors, stems = functional.normalize(vectors, dim=1), len(vectors) // 2
    cosines = unit_vectors @ unit_vectors.T
    partner_cosines = cosines.diagonal(stems).repeat(2)
    is_same_stem = torch.eye(stems, dtype=torch.bool, device=vectors.device).repeat(2, 2)
    nearest_cosines = cosines.masked_fill(is_same_stem, -2.0).amax(dim=1)
    return functional.relu(margin - partner_cosines + nearest_cosines).mean()
