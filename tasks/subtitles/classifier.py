"""The pattern of a sub-title, by a recurrent network that reads its characters and by n-grams.

    vector = GRU(characters),   p(pattern | sub-title) = softmax(W · vector / T)

The network learns from what the weak rules label (rules.py), each label as often as every other, with the
cues of the rules hidden (cues.py). What no rule labels is mostly plain titles: a sample of it, without what
looks like another pattern, is learnt as such beside the plain titles that rules know. The temperature T is
fitted on a tenth of the rule-labelled sub-titles that training does not see, cues hidden.

A second reader adds up weights of n-grams (ngrams.py); p is the normalised geometric mean of what both say. A
pattern is given where p is at least ``LEAST`` and the sub-title has a form of it (forms.py). Guests and
places are known by vocabulary alone, which the rules hold: they are left to them.

References:
    Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017 (temperature).
    Ratner et al. Snorkel. VLDB 2018 (weak rules; We differ: the first rule decides, none is weighted).
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
from tasks.subtitles.ngrams import TwoReaders, ngrams
from tasks.subtitles.rules import PATTERNS, PLAIN, clean, match_rule
from tasks.subtitles.settings import PatternSettings

HEAD = "head.safetensors"
ABOUT = "patterns.json"
# The least probability of an answer: from it on .93 or more are right on the sub-titles of
# benchmarks/sub_titles_development*.tsv.
LEAST = {
    "date": 0.65,
    "teams": 0.75,
    "competition": 0.65,
    "segments": 0.65,
    "part": 0.65,
    "episode_number": 0.65,
    PLAIN: 0.95,
}
_POOL = 32  # batches whose sub-titles are sorted by length
_HELD_OUT = 10  # one of so many rule-labelled sub-titles is for the temperature and the confusion
_DIGITS = re.compile(r"\d")
# What looks like another pattern than a plain title, among what no rule labels.
_MARKED = re.compile(
    r"[;/|+–@#]| - |--|\(\d|^\d+\W|\d\W*$|\d[.:]\d|^[A-Z]\w+-[A-Z]| (?:at|x|contre|gegen|contra|mod) [A-Z]"
)
_TEMPERATURES = np.geomspace(0.5, 4.0, 40)


class PatternError(ExpectedError, ValueError):
    """Sub-titles from which nothing can be learnt."""


class Examples(NamedTuple):
    """Sub-titles and the number of the pattern of each."""

    texts: list[str]
    labels: Int64[np.ndarray, " strings"]


@dataclass(frozen=True)
class Patterns:
    """The patterns of some sub-titles: "" where none is given; the probability, nan where a rule decided."""

    names: list[str]
    probabilities: Float32[np.ndarray, " strings"]

    def known_probabilities(self) -> list[float | None]:
        """Probabilities as a table has them: None where a rule decided."""
        return [None if math.isnan(value) else value for value in self.probabilities.tolist()]

    def count(self, *, ruled: bool = False) -> dict[str, int]:
        """How many sub-titles have each pattern, most first; those alone that a rule decided."""
        pairs = zip(self.names, self.probabilities.tolist(), strict=True)
        counted = Counter(name for name, value in pairs if name and (math.isnan(value) or not ruled))
        return dict(counted.most_common())

    def examples(self, sub_titles: Sequence[str], weights: Sequence[int], most: int) -> dict[str, list[str]]:
        """Of each pattern the sub-titles of the greatest weight that no rule labels."""
        found: dict[str, list[str]] = {}
        for _, text, name, value in sorted(
            zip(weights, sub_titles, self.names, self.probabilities.tolist(), strict=True), reverse=True
        ):
            if name and not math.isnan(value) and len(found.setdefault(name, [])) < most:
                found[name].append(clean(text))
        return found


class PatternClassifier:
    """A trained classifier; ``classes`` are the patterns that it knows."""

    def __init__(
        self, encoder: CharacterEncoder, head: TwoReaders, classes: Sequence[str], about: Mapping[str, Any]
    ) -> None:
        """``about`` has the temperature and the least probability of each pattern that may be given."""
        self.encoder, self.head, self.classes, self.about = encoder, head, tuple(classes), dict(about)

    def probabilities(self, sub_titles: Sequence[str]) -> Float32[np.ndarray, "strings labels"]:
        """Calibrated probability of each class."""
        texts = [_prepared(text) for text in sub_titles]
        vectors = torch.from_numpy(self.encoder.vectors(texts)).to(self.encoder.device)
        with torch.inference_mode():
            one, other = (logits.log_softmax(dim=1) for logits in self.head(vectors, ngrams(texts)))
            return ((one + other) / 2 / self.about["temperature"]).softmax(dim=1).cpu().numpy()

    def classify(self, sub_titles: Sequence[str]) -> Patterns:
        """What the rules say, and where they abstain, what the network says if it is sure enough."""
        ruled = [match_rule(text) for text in sub_titles]
        names, found = [rule or "" for rule in ruled], np.full(len(ruled), np.nan, dtype=np.float32)
        asked = [place for place, rule in enumerate(ruled) if rule is None]
        said = self.probabilities([sub_titles[place] for place in asked])
        for place, row in zip(asked, said):
            best, found[place] = int(row.argmax()), row.max()
            name = self.classes[best]
            sure = row[best] >= self.about["least"].get(name, 1.1)
            names[place] = name if sure and has_form(clean(sub_titles[place]), name) else ""
        return Patterns(names, found)

    def save(self, folder: Path) -> None:
        """Writes the encoder's files, head.safetensors and patterns.json."""
        self.encoder.save(folder)
        learnt = {name: own.detach().cpu().numpy() for name, own in self.head.named_parameters()}
        save_file(learnt, folder / HEAD)
        about = json.dumps({"classes": self.classes, **self.about}, indent=1)
        (folder / ABOUT).write_text(about, encoding="utf-8")

    @staticmethod
    def open(folder: Path) -> "PatternClassifier":
        """Reads what ``save`` wrote."""
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        encoder, arrays = CharacterEncoder.open(folder), load_file(folder / HEAD)
        head = TwoReaders(*arrays["vector.weight"].shape[::-1])
        with torch.no_grad():
            for name, parameter in head.named_parameters():
                parameter.copy_(torch.from_numpy(arrays[name]))
        return PatternClassifier(encoder, head, about.pop("classes"), about)


class PatternTraining:
    """A classifier and its training run; ``run`` trains it."""

    def __init__(self, sub_titles: Sequence[str], settings: PatternSettings, device: str = "cpu") -> None:
        """Labels sub-titles by the rules and hides their cues.

        Raises:
            PatternError: Fewer than two patterns are found by rules.
        """
        self.settings, seed = settings, settings.training.seed
        distinct = sorted({clean(text) for text in sub_titles} - {""})
        ruled: dict[str, list[str]] = {}
        for text in distinct:
            ruled.setdefault(match_rule(text) or "", []).append(text)
        unlabelled = [text for text in ruled.pop("", []) if not _MARKED.search(text)]
        self.classes = [name for name in PATTERNS if name in ruled]
        if len(self.classes) < 2:
            raise PatternError(
                f"the rules find {len(self.classes)} patterns in {len(distinct)} distinct sub-titles; two or "
                "more are needed. Read a guide with sub-titles first."
            )
        words = sorted({word for text in distinct for word in re.findall(r"[^\W\d_]{2,}", text)})
        chance, cues = random.Random(seed), Cues(words, seed)
        held_out = {name: [text for text in ruled[name] if _is_held_out(text)] for name in self.classes}
        learnt = {name: [text for text in ruled[name] if not _is_held_out(text)] for name in self.classes}
        self.held_out = self._examples(held_out, settings.examples // _HELD_OUT, cues, chance)
        examples = self._examples(learnt, settings.examples, cues, chance)
        chosen = chance.sample(unlabelled, min(settings.unlabelled, len(unlabelled)))
        if PLAIN in self.classes:
            labels = np.append(examples.labels, np.full(len(chosen), self.classes.index(PLAIN)))
            examples = Examples(examples.texts + chosen, labels)
        texts = [_prepared(text) for text in examples.texts]
        self.labels = torch.from_numpy(examples.labels)
        encoder = CharacterEncoder(settings.encoder, Alphabet.of(texts), seed=seed).to(torch.device(device))
        self.head = TwoReaders(settings.encoder.hidden, len(self.classes), encoder.device)
        self.ngrams = ngrams(texts)
        self.training = RecurrentTraining(
            encoder, encoder.alphabet.ids(texts), self._batches, self._loss, settings.training, head=self.head
        )

    def run(self) -> Iterator[Progress]:
        """Trains the remaining epochs."""
        yield from self.training.run()

    def finish(self) -> PatternClassifier:
        """The trained classifier, its temperature fitted."""
        about = {"temperature": 1.0, "least": LEAST}
        model = PatternClassifier(self.training.encoder, self.head, self.classes, about)
        if len(self.held_out.labels):
            probabilities = model.probabilities(self.held_out.texts)
            model.about["temperature"] = _fit_temperature(probabilities, self.held_out.labels)
        return model

    def _examples(
        self, texts: Mapping[str, Sequence[str]], count: int, cues: Cues, chance: random.Random
    ) -> Examples:
        """``count`` sub-titles of each class that has any, with hidden cues."""
        found, labels = [], []
        for label, name in enumerate(self.classes):
            if texts[name]:
                found += [cues.hide(chance.choice(texts[name]), name) for _ in range(count)]
                labels += [label] * count
        return Examples(found, np.array(labels, dtype=np.int64))

    def _batches(self, rng: np.random.Generator) -> Iterator[Batch]:
        """Batches in a random order, each of sub-titles of like length: three times as many in a second."""
        size, lengths = self.settings.training.batch_size, self.training.strings.lengths
        order = rng.permutation(len(lengths))
        pools = (order[start : start + _POOL * size] for start in range(0, len(order), _POOL * size))
        order = np.concatenate([pool[np.argsort(lengths[pool], kind="stable")] for pool in pools])
        starts = rng.permutation(np.arange(0, len(order), size))
        for chosen in (order[start : start + size] for start in starts):
            yield chosen, (self.labels[chosen], self.ngrams.take(chosen))

    def _loss(self, vectors: Tensor, facts: tuple[Tensor, Ragged]) -> Tensor:
        labels, found = facts[0].to(vectors.device), facts[1]
        by_vector, by_ngrams = self.head(vectors, found)
        return F.cross_entropy(by_vector, labels) + F.cross_entropy(by_ngrams, labels)


def _prepared(text: str) -> str:
    """What the network reads: every digit is a 9."""
    return _DIGITS.sub("9", clean(text))


def _is_held_out(text: str) -> bool:
    return zlib.crc32(text.encode()) % _HELD_OUT == 0


def _fit_temperature(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The temperature of the least cross-entropy, of forty between .5 and 4."""
    logits = np.log(np.maximum(probabilities, 1e-12))
    own = torch.from_numpy(labels)
    losses = [F.cross_entropy(torch.from_numpy(logits / t), own).item() for t in _TEMPERATURES]
    return float(_TEMPERATURES[int(np.argmin(losses))])
