"""Classifies sub-titles by pattern with a recurrent network over characters and with n-grams.

    vector = GRU(characters),   p(pattern | sub-title) = softmax(W · vector / T)

W is a linear layer, and T is a temperature. The network is trained on sub-titles that weak rules label
(rules.py), with balanced classes. The words by which the rules recognize a pattern (cues) are hidden
(cues.py). Most sub-titles that no rule labels are plain titles. Therefore, a sample of these sub-titles is
added to the class of plain titles, unless they look like another pattern. T is fitted on a held-out tenth of
the labelled sub-titles.

A second classifier sums weights of n-grams (ngrams.py). The probability p is the normalized geometric mean of
the probabilities of both classifiers. A pattern is assigned if p is at least MIN_PROBABILITY and the
sub-title fulfils the form of the pattern (forms.py). The patterns guests and place are assigned only by
rules, which use word lists; the classifiers have no such lists.

References:
    Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017 (temperature).
    Ratner et al. Snorkel. VLDB 2018 (weak rules). We differ: the first matching rule decides.
"""

import json
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from storage.arrays import Ragged
from storage.artifacts import Progress
from storage.errors import ExpectedError
from storage.shapes import Float32, Int64
from tasks.recurrent.alphabet import Alphabet
from tasks.recurrent.encoder import CharacterEncoder
from tasks.recurrent.training import Batch, RecurrentTraining
from tasks.subtitles.cues import Cues
from tasks.subtitles.forms import has_form
from tasks.subtitles.ngrams import VectorAndNgramHead, ngrams
from tasks.subtitles.rules import PATTERNS, PLAIN, collapse_spaces, match_rule
from tasks.subtitles.settings import PatternSettings

HEAD_FILE = "head.safetensors"  # file with the weights of both linear classifiers
METADATA_FILE = "patterns.json"  # file with the classes, the temperature and the minimum probabilities
# Minimum probability of each pattern, chosen for a precision of at least .93 on the sub-titles of
# benchmarks/objectives/sub_titles_development*.tsv.
MIN_PROBABILITY = {
    "date": 0.65,
    "teams": 0.75,
    "competition": 0.65,
    "segments": 0.65,
    "part": 0.65,
    "episode_number": 0.65,
    PLAIN: 0.95,
}
_POOL_BATCHES = 32  # number of batches whose sub-titles are sorted by length together
_FOLDS = 10  # one in ten rule-labelled sub-titles is held out, for the temperature and the confusion matrix
_DIGITS = re.compile(r"\d")
# Matches sub-titles that look like another pattern than a plain title.
_NOT_PLAIN = re.compile(
    r"[;/|+–@#]| - |--|\(\d|^\d+\W|\d\W*$|\d[.:]\d|^[A-Z]\w+-[A-Z]| (?:at|x|contre|gegen|contra|mod) [A-Z]"
)
_TEMPERATURES = np.geomspace(0.5, 4.0, 40)


class PatternError(ExpectedError, ValueError):
    """Error: there are too few sub-titles for training, or the home has no classifier."""


class Examples(NamedTuple):
    """Labelled sub-titles for training or for measuring precision."""

    texts: list[str]
    labels: Int64[np.ndarray, " strings"]  # index of the class of each text


@dataclass(frozen=True)
class Patterns:
    """Result of a classification: the pattern of each sub-title."""

    names: list[str]  # name of the pattern; "" if no pattern is assigned
    probabilities: Float32[np.ndarray, " strings"]  # probability of the pattern; nan if a rule decided

    def nullable_probabilities(self) -> list[float | None]:
        """Returns the probability of each sub-title; None if a rule decided."""
        return [None if math.isnan(value) else value for value in self.probabilities.tolist()]

    def count(self, *, by_rules_only: bool = False) -> dict[str, int]:
        """Returns the number of sub-titles by pattern, the most frequent pattern first.

        If ``by_rules_only`` is set, only sub-titles whose pattern was decided by a rule are counted.
        """
        pairs = zip(self.names, self.probabilities.tolist(), strict=True)
        counts = Counter(name for name, value in pairs if name and (math.isnan(value) or not by_rules_only))
        return dict(counts.most_common())

    def examples(
        self, sub_titles: Sequence[str], weights: Sequence[int], max_examples: int
    ) -> dict[str, list[str]]:
        """Returns at most ``max_examples`` sub-titles of each pattern, those with the largest weights first.

        Sub-titles whose pattern was decided by a rule are left out.
        """
        texts_by_pattern: dict[str, list[str]] = {}
        for _, text, name, value in sorted(
            zip(weights, sub_titles, self.names, self.probabilities.tolist(), strict=True), reverse=True
        ):
            if name and not math.isnan(value) and len(texts_by_pattern.setdefault(name, [])) < max_examples:
                texts_by_pattern[name].append(collapse_spaces(text))
        return texts_by_pattern


class PatternClassifier:
    """Trained classifier of sub-titles. Its classes are patterns; ``classes`` has their names."""

    def __init__(
        self,
        encoder: CharacterEncoder,
        head: VectorAndNgramHead,
        classes: Sequence[str],
        metadata: Mapping[str, Any],
    ) -> None:
        """Combines a trained encoder and trained linear classifiers.

        Args:
            encoder: Recurrent encoder of the characters of a sub-title.
            head: Linear classifiers of the encoder's vector and of n-grams.
            classes: Names of the patterns.
            metadata: "temperature" of the softmax, and "least", the minimum probability by pattern.
        """
        self.encoder, self.head, self.classes, self.metadata = encoder, head, tuple(classes), dict(metadata)

    def probabilities(self, sub_titles: Sequence[str]) -> Float32[np.ndarray, "strings labels"]:
        """Computes the calibrated probability of each class for each sub-title."""
        texts = [_mask_digits(text) for text in sub_titles]
        vectors = torch.from_numpy(self.encoder.vectors(texts)).to(self.encoder.device)
        with torch.inference_mode():
            by_vector, by_ngrams = (logits.log_softmax(dim=1) for logits in self.head(vectors, ngrams(texts)))
            return ((by_vector + by_ngrams) / 2 / self.metadata["temperature"]).softmax(dim=1).cpu().numpy()

    def classify(self, sub_titles: Sequence[str]) -> Patterns:
        """Assigns a pattern to each sub-title by a rule, or by the classifiers if no rule applies.

        If the classifiers are not certain, no pattern is assigned.
        """
        names = [match_rule(text) or "" for text in sub_titles]
        probabilities = np.full(len(names), np.nan, np.float32)
        indices_without_rule = [index for index, name in enumerate(names) if not name]
        class_probabilities = self.probabilities([sub_titles[index] for index in indices_without_rule])
        for index, row in zip(indices_without_rule, class_probabilities):
            best, probabilities[index] = int(row.argmax()), row.max()
            name = self.classes[best]
            is_certain = row[best] >= self.metadata["least"].get(name, math.inf)
            names[index] = name if is_certain and has_form(collapse_spaces(sub_titles[index]), name) else ""
        return Patterns(names, probabilities)

    def save(self, folder: Path) -> None:
        """Writes the encoder's files, head.safetensors and patterns.json into a folder."""
        self.encoder.save(folder)
        arrays = {name: parameter.detach().cpu().numpy() for name, parameter in self.head.named_parameters()}
        save_file(arrays, folder / HEAD_FILE)
        metadata = json.dumps({"classes": self.classes, **self.metadata}, indent=1)
        (folder / METADATA_FILE).write_text(metadata, encoding="utf-8")

    @staticmethod
    def open(folder: Path) -> "PatternClassifier":
        """Reads a classifier from a folder that ``save`` has written."""
        metadata = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))
        encoder, arrays = CharacterEncoder.open(folder), load_file(folder / HEAD_FILE)
        head = VectorAndNgramHead(*arrays["vector.weight"].shape[::-1])
        with torch.no_grad():
            for name, parameter in head.named_parameters():
                parameter.copy_(torch.from_numpy(arrays[name]))
        return PatternClassifier(encoder, head, metadata.pop("classes"), metadata)


class PatternTraining:
    """Training of a classifier of sub-titles. Iterate over ``run``, then call ``finish``."""

    def __init__(self, sub_titles: Sequence[str], settings: PatternSettings, device: str = "cpu") -> None:
        """Labels sub-titles by the rules, hides the cues of the rules, and initializes the networks.

        Raises:
            PatternError: The rules find fewer than two patterns.
        """
        self.settings, seed = settings, settings.training.seed
        distinct_texts = sorted({collapse_spaces(text) for text in sub_titles} - {""})
        by_pattern: dict[str, list[str]] = {}
        for text in distinct_texts:
            by_pattern.setdefault(match_rule(text) or "", []).append(text)
        plain_texts = [text for text in by_pattern.pop("", []) if not _NOT_PLAIN.search(text)]
        self.classes = [name for name in PATTERNS if name in by_pattern]
        if len(self.classes) < 2:
            raise PatternError(
                f"the rules find {len(self.classes)} patterns in {len(distinct_texts)} distinct sub-titles; "
                "two or more are needed. Read a guide with sub-titles first."
            )
        words = sorted({word for text in distinct_texts for word in re.findall(r"[^\W\d_]{2,}", text)})
        rng, cues = random.Random(seed), Cues(words, seed)
        held_out = {name: [text for text in by_pattern[name] if _is_held_out(text)] for name in self.classes}
        training = {
            name: [text for text in by_pattern[name] if not _is_held_out(text)] for name in self.classes
        }
        self.held_out_examples = self._draw_examples(held_out, settings.examples // _FOLDS, cues, rng)
        examples = self._draw_examples(training, settings.examples, cues, rng)
        plain_sample = rng.sample(plain_texts, min(settings.unlabelled, len(plain_texts)))
        if PLAIN in self.classes:
            labels = np.append(examples.labels, np.full(len(plain_sample), self.classes.index(PLAIN)))
            examples = Examples(examples.texts + plain_sample, labels)
        texts = [_mask_digits(text) for text in examples.texts]
        self.labels = torch.from_numpy(examples.labels)
        encoder = CharacterEncoder(settings.encoder, Alphabet.from_strings(texts), seed=seed).to(
            torch.device(device)
        )
        self.head = VectorAndNgramHead(settings.encoder.hidden, len(self.classes), encoder.device)
        self.ngrams = ngrams(texts)
        self.training = RecurrentTraining(
            encoder, encoder.alphabet.ids(texts), self._batches, self._loss, settings.training, head=self.head
        )

    def run(self) -> Iterator[Progress]:
        """Trains all epochs and yields the progress after each epoch."""
        yield from self.training.run()

    def finish(self) -> PatternClassifier:
        """Fits the temperature on held-out sub-titles, and returns the trained classifier."""
        metadata = {"temperature": 1.0, "least": MIN_PROBABILITY}
        model = PatternClassifier(self.training.encoder, self.head, self.classes, metadata)
        if len(self.held_out_examples.labels):
            probabilities = model.probabilities(self.held_out_examples.texts)
            model.metadata["temperature"] = _fit_temperature(probabilities, self.held_out_examples.labels)
        return model

    def _draw_examples(
        self, texts: Mapping[str, Sequence[str]], count: int, cues: Cues, rng: random.Random
    ) -> Examples:
        """Draws ``count`` sub-titles of each class that has any, with replacement, and hides their cues."""
        examples, labels = [], []
        for label, name in enumerate(self.classes):
            if texts[name]:
                examples += [cues.hide(rng.choice(texts[name]), name) for _ in range(count)]
                labels += [label] * count
        return Examples(examples, np.array(labels, dtype=np.int64))

    def _batches(self, rng: np.random.Generator) -> Iterator[Batch]:
        """Yields random batches of sub-titles with similar lengths (training is three times as fast)."""
        size, lengths = self.settings.training.batch_size, self.training.strings.lengths
        order = rng.permutation(len(lengths))
        pools = (
            order[start : start + _POOL_BATCHES * size]
            for start in range(0, len(order), _POOL_BATCHES * size)
        )
        order = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
        starts = rng.permutation(np.arange(0, len(order), size))
        for rows in (order[start : start + size] for start in starts):
            yield rows, (self.labels[rows], self.ngrams.take(rows))

    def _loss(self, vectors: Tensor, targets: tuple[Tensor, Ragged]) -> Tensor:
        """Returns the sum of the cross-entropies of both classifiers; ``targets`` are labels and n-grams."""
        labels, grams = targets[0].to(vectors.device), targets[1]
        by_vector, by_ngrams = self.head(vectors, grams)
        return F.cross_entropy(by_vector, labels) + F.cross_entropy(by_ngrams, labels)


def _mask_digits(text: str) -> str:
    """Collapses white space and replaces every digit by 9."""
    return _DIGITS.sub("9", collapse_spaces(text))


def _is_held_out(text: str) -> bool:
    """Returns whether the hash of a sub-title selects it for the held-out tenth."""
    return zlib.crc32(text.encode()) % _FOLDS == 0


def _fit_temperature(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Returns the temperature with the lowest cross-entropy, out of forty temperatures from .5 to 4."""
    logits = np.log(np.maximum(probabilities, 1e-12))
    targets = torch.from_numpy(labels)
    losses = [
        F.cross_entropy(torch.from_numpy(logits / temperature), targets).item()
        for temperature in _TEMPERATURES
    ]
    return float(_TEMPERATURES[int(np.argmin(losses))])
