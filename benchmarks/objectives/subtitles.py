"""Sub-title patterns: training time, and precision on sub-titles that were labelled by hand."""

import gzip
import os
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import iterparse

import numpy as np
import torch

from benchmarks.claims import Claim
from tasks.subtitles.classifier import MIN_PROBABILITY, PatternClassifier, PatternTraining
from tasks.subtitles.rules import PATTERNS, match_rule
from tasks.subtitles.settings import PatternSettings

HERE = Path(__file__).resolve().parent
REPORTED = HERE / "sub_titles.tsv"
DEVELOPMENT = sorted(HERE.glob("sub_titles_development*.tsv"))
FOLDERS = ("guides", "described")
LEASTS = (0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@dataclass(frozen=True)
class Row:
    """A hand-labelled sub-title and the pattern that the classifier predicted."""

    sub_title: str
    pattern: str
    weight: float  # number of sub-titles that it represents
    answer: str  # "" if the classifier is not sure
    probability: float


@dataclass(frozen=True)
class Measured:
    """A classifier that was trained on all guides, with its predictions for hand-labelled sub-titles."""

    rows: list[Row]
    seconds: float
    cpu_seconds: float
    sub_titles: int
    unlabelled: int  # sub-titles without a label by rules
    answered: int  # of the unlabelled ones
    model: PatternClassifier


def real_sub_titles() -> list[str]:
    """Returns the distinct sub-titles of the guides in GUIDESPACE_DATA."""
    texts: set[str] = set()
    for folder in FOLDERS:
        for file in sorted((Path(os.environ["GUIDESPACE_DATA"]) / folder).glob("*.xml.gz")):
            with gzip.open(file) as handle:
                for _, element in iterparse(handle):
                    if element.tag == "sub-title" and element.text:
                        texts.add(element.text)
                    if element.tag == "programme":
                        element.clear()
    return sorted(texts)


def read_labelled(file: Path) -> list[tuple[str, str, float]]:
    """Reads (sub-title, pattern, weight) from a file with labels by hand."""
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    return [(text, pattern, float(weight)) for pattern, weight, _, _, text in lines[1:]]


def measure(settings: PatternSettings | None = None, file: Path = REPORTED, threads: int = 1) -> Measured:
    """Trains on all guides with ``threads`` threads, and classifies the sub-titles of a file."""
    texts = real_sub_titles()
    torch.set_num_threads(threads)
    started, cpu = time.perf_counter(), time.process_time()
    training = PatternTraining(texts, settings or PatternSettings())
    for _ in training.run():
        pass
    model = training.finish()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    left = [text for text in texts if match_rule(text) is None]
    answered = sum(map(bool, model.classify(left).names))
    return Measured(answer(model, file), seconds, cpu, len(texts), len(left), answered, model)


def answer(model: PatternClassifier, file: Path = REPORTED) -> list[Row]:
    """Classifies the hand-labelled sub-titles of a file."""
    labelled = [row for row in read_labelled(file) if match_rule(row[0]) is None]
    patterns = model.classify([text for text, _, _ in labelled])
    answers = zip(labelled, patterns.names, patterns.probabilities.tolist(), strict=True)
    return [Row(*row, *(name, value)) for (row, name, value) in answers]


def precision(rows: list[Row], pattern: str) -> float:
    """Returns the share of answers with the pattern that are correct; NaN without such answers."""
    right = [row.pattern == pattern for row in rows if row.answer == pattern]
    return sum(right) / len(right) if right else float("nan")


def recall(rows: list[Row], pattern: str) -> float:
    """Returns the share of the guides' sub-titles with the pattern that are recognised, by the weights of
    rows.
    """
    of_pattern = [row for row in rows if row.pattern == pattern]
    return sum(row.weight for row in of_pattern if row.answer == pattern) / sum(
        row.weight for row in of_pattern
    )


def choose_least(rows: list[Row], pattern: str, aim: float = 0.93) -> float:
    """Returns the lowest threshold of .65, .7 … .95 above which the share ``aim`` of predictions is correct.

    The rows must contain all predictions.
    """
    for least in LEASTS:
        sure = [row for row in rows if row.probability >= least]
        if precision(sure, pattern) >= aim:
            return least
    return LEASTS[-1]


def cross_validate(model: PatternClassifier) -> str:
    """Returns, as text, the precision on each development set with thresholds from the other sets."""
    about = {**model.metadata, "least": dict.fromkeys(model.classes, 0.0)}
    every = PatternClassifier(model.encoder, model.head, model.classes, about)
    answers, lines = [answer(every, file) for file in DEVELOPMENT], []
    for name in MIN_PROBABILITY:
        sure = []
        for held_out in answers:
            least = choose_least([row for rows in answers if rows is not held_out for row in rows], name)
            sure += [row for row in held_out if row.answer == name and row.probability >= least]
        least = choose_least([row for rows in answers for row in rows], name)
        lines.append(f"{name:<15} {precision(sure, name):.2f} of {len(sure)}; chosen on all {least}")
    return "\n".join(lines)


def macro_precision(rows: list[Row]) -> float:
    """Returns the mean precision over the patterns that the classifier may answer; 0 for a pattern without
    answers.
    """
    return float(np.mean(np.nan_to_num([precision(rows, name) for name in MIN_PROBABILITY])))


def confusion(rows: list[Row]) -> str:
    """Returns counts by hand label (row) and answer (column) as text."""
    names = [*PATTERNS, ""]
    head = f"{'by hand':<15}" + "".join(f"{name[:9] or 'unsure':>12}" for name in names)
    lines = [
        f"{label:<15}"
        + "".join(f"{sum(r.pattern == label and r.answer == name for r in rows):>12}" for name in names)
        for label in PATTERNS
    ]
    return "\n".join([head, *lines])


def claims(quick: bool) -> list[Claim]:
    """Measures all claims of this file from one training and prints the confusion matrix; ``quick`` has no
    effect.
    """
    if quick:
        return []
    done = measure()
    print(confusion(done.rows))
    for name in PATTERNS:
        count = sum(row.answer == name for row in done.rows)
        shares = f"precision {precision(done.rows, name):.2f}, recall {recall(done.rows, name):.2f}"
        print(f"{name:<15} {count:>3} answers, {shares} over the guides")
    print(f"cross-validated on the development sets:\n{cross_validate(done.model)}")
    macro = macro_precision(done.rows)
    return [
        Claim("sub-titles that no rule labels: macro precision, patterns given", macro, aim=0.9),
        Claim("share of them that get a pattern", done.answered / done.unlabelled, better=None),
        Claim("training on one thread, s", done.seconds, aim=120, better="less"),
        Claim("the same, CPU s", done.cpu_seconds, better=None),
    ]


if __name__ == "__main__":
    for claim in claims(quick=False):
        print(claim)
