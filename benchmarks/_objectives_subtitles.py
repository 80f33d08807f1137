"""Patterns of sub-titles: training time, and precision on sub-titles that no rule labels, read by hand."""

import gzip
import os
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import iterparse

import numpy as np
import torch

from benchmarks.claims import Claim
from tasks.subtitles.classifier import LEAST, PatternClassifier, PatternTraining
from tasks.subtitles.rules import PATTERNS, match_rule
from tasks.subtitles.settings import PatternSettings

HERE = Path(__file__).resolve().parent
REPORTED = HERE / "sub_titles.tsv"
FOLDERS = ("guides", "described")


@dataclass(frozen=True)
class Row:
    """A hand-labelled sub-title and what the classifier says of it."""

    sub_title: str
    pattern: str
    weight: float  # how many sub-titles it stands for
    said: str  # "" where the classifier is not sure
    probability: float


@dataclass(frozen=True)
class Measured:
    """A classifier that was trained on all guides, and its answers."""

    rows: list[Row]
    seconds: float
    cpu_seconds: float
    sub_titles: int
    model: PatternClassifier


def real_sub_titles() -> list[str]:
    """Distinct sub-titles of the guides in GUIDESPACE_DATA."""
    found: set[str] = set()
    for folder in FOLDERS:
        for file in sorted((Path(os.environ["GUIDESPACE_DATA"]) / folder).glob("*.xml.gz")):
            with gzip.open(file) as handle:
                for _, element in iterparse(handle):
                    if element.tag == "sub-title" and element.text:
                        found.add(element.text)
                    if element.tag == "programme":
                        element.clear()
    return sorted(found)


def read_labelled(file: Path) -> list[tuple[str, str, float]]:
    """(sub-title, pattern, weight) of a file that was labelled by hand."""
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    return [(text, pattern, float(weight)) for pattern, weight, _, _, text in lines[1:]]


def measure(settings: PatternSettings | None = None, file: Path = REPORTED, threads: int = 1) -> Measured:
    """Trains on all guides with so many threads, and asks about the sub-titles of a file."""
    texts = real_sub_titles()
    torch.set_num_threads(threads)
    started, cpu = time.perf_counter(), time.process_time()
    training = PatternTraining(texts, settings or PatternSettings())
    for _ in training.run():
        pass
    model = training.finish()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return Measured(answer(model, file), seconds, cpu, len(texts), model)


def answer(model: PatternClassifier, file: Path = REPORTED) -> list[Row]:
    """What a classifier says of the hand-labelled sub-titles of a file."""
    labelled = [row for row in read_labelled(file) if match_rule(row[0]) is None]
    found = model.classify([text for text, _, _ in labelled])
    said = zip(labelled, found.names, found.probabilities.tolist(), strict=True)
    return [Row(*row, *(name, value)) for (row, name, value) in said]


def precision(rows: list[Row], pattern: str) -> float:
    """The share of what is said to be of a pattern that is; nan where nothing is."""
    right = [row.pattern == pattern for row in rows if row.said == pattern]
    return sum(right) / len(right) if right else float("nan")


def recall(rows: list[Row], pattern: str) -> float:
    """The share of the sub-titles of a pattern that are said to be."""
    own = [row.said == pattern for row in rows if row.pattern == pattern]
    return sum(own) / len(own)


def macro_precision(rows: list[Row]) -> float:
    """The mean over the patterns that the classifier may give; one that is never given counts as zero."""
    return float(np.mean(np.nan_to_num([precision(rows, name) for name in LEAST])))


def confusion(rows: list[Row]) -> str:
    """Counts by hand label (row) and answer (column) as text."""
    names = [*PATTERNS, ""]
    head = f"{'by hand':<15}" + "".join(f"{name[:9] or 'unsure':>12}" for name in names)
    lines = [
        f"{label:<15}"
        + "".join(f"{sum(r.pattern == label and r.said == name for r in rows):>12}" for name in names)
        for label in PATTERNS
    ]
    return "\n".join([head, *lines])


def claims(quick: bool) -> list[Claim]:
    """All claims of this file, from one training; prints the confusion. It has no quick form."""
    if quick:
        return []
    done = measure()
    print(confusion(done.rows))
    for name in PATTERNS:
        print(f"{name:<15} precision {precision(done.rows, name):.2f}, recall {recall(done.rows, name):.2f}")
    macro = macro_precision(done.rows)
    return [
        Claim(name="sub-titles that no rule labels: macro precision, patterns given", value=macro, aim=0.9),
        Claim(name="training on one thread, s", value=done.seconds, aim=120, better="less"),
        Claim(name="the same, CPU s", value=done.cpu_seconds, better=None),
    ]


if __name__ == "__main__":
    for claim in claims(quick=False):
        print(claim)
