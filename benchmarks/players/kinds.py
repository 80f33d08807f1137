"""Precision and recall of the kinds of programmes, on real guides whose categories state kinds.

A home is made of each guide alone, and of the four guides of a household. Titles are scored as if they had no
categories: neither the model nor the threshold has seen them (tasks/kinds/scores.py). Series are also
recognised by episode numbers, without a model. A guide counts for a kind if at least MIN_TITLES of its titles
state it. The labels are those of training: on channels devoted to a topic, it is unknown whether titles that
state another kind have the topic (tasks/kinds/evidence.py). The rows "strict precision" count them as errors.
"""

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.claims import Claim, guides, mean_interval, run
from benchmarks.stages import ingest, preprocess, tokenize
from storage.formats.programme_kinds import read_kind_arrays
from storage.home.workspace import Workspace
from tasks.kinds.classifier import KindClassifier
from tasks.kinds.evidence import Evidence
from tasks.kinds.kinds import KINDS, Kind
from tasks.kinds.scores import Figures, predict_held_out, score_kind
from tasks.tokenize.settings import TokenizeSettings

DEVELOPMENT = ("US1", "ZA1", "FR1", "NL1", "NO1", "GR1", "magenta_de_2022-05")
DEVELOPMENT += ("foxtel_au", "pluto_gb", "pluto_de", "pluto_es")
TEST = ("UK1", "AU1", "IT1", "PT1", "DK1", "SK1", "magenta_de_2022-06")
TEST += ("binge_au", "pluto_us", "pluto_fr", "pluto_it", "pluto_br")
HOUSEHOLD = ("US1", "FR1", "NL1", "foxtel_au")
MIN_TITLES = 50
TARGETS: dict[Kind, tuple[float, float]] = {"film": (0.97, 0.85)}  # precision and recall
TARGETS |= dict.fromkeys(("series", "sport", "news", "children"), (0.95, 0.8))


def measure_home(names: Sequence[str]) -> dict[Kind, Figures]:
    """Makes a home of guides; returns figures on its titles."""
    with tempfile.TemporaryDirectory() as folder:
        home, settings = Workspace(folder).home, TokenizeSettings()
        guide = ingest(home, guides(*names))
        vocabulary = tokenize(home, guide, settings)
        corpus = Workspace(home).folder(preprocess(home, guide, vocabulary, settings.splits.salt))
        arrays, about = read_kind_arrays(corpus) or ({}, {})
        classifier = KindClassifier.from_arrays(arrays, about)
    if classifier is None:
        return {}
    validation = classifier.validation
    parts = (
        arrays[f"title.{name}"][validation.titles] for name in ("shares", "numbered", "animated", "not_film")
    )
    evidence = Evidence(*parts)
    labels = validation.labels
    figures: dict[Kind, Figures] = {}
    predicted = predict_held_out(classifier)
    for column, kind in enumerate(KINDS):
        if (labels[:, column] == 1).sum() < MIN_TITLES:
            continue
        chosen = predicted[:, column]
        if kind == "series":
            chosen = chosen | evidence.is_numbered
        if kind == "film":
            chosen = chosen & ~evidence.is_numbered
        figures[kind] = score_kind(validation.margins[:, column], labels[:, column], chosen)
        with_topics = evidence.labels()[:, column]
        strict = score_kind(validation.margins[:, column], with_topics, chosen)["precision"]
        figures[kind]["strict precision"] = strict
    return figures


def measure(quick: bool, names: Sequence[str] = DEVELOPMENT) -> list[Claim]:
    """Measures each guide alone and a household of guides."""
    homes: list[tuple[str, ...]] = [(name,) for name in (names[3:4] if quick else names)]
    if not quick and names == DEVELOPMENT:
        homes.append(HOUSEHOLD)
    claims: list[Claim] = []
    by_kind: defaultdict[Kind, list[Figures]] = defaultdict(list)
    for home in homes:
        begin = time.perf_counter()
        for kind, figures in measure_home(home).items():
            by_kind[kind].append(figures)
            what = f"{kind}, {'+'.join(home)}, {figures['titles']} titles"
            claims += _claims(what, figures, 0.94 if kind == "film" else None)
        print(f"{'+'.join(home)}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    for kind, homes_of_kind in by_kind.items():
        precision, recall = TARGETS.get(kind, (None, None))
        for key, aim in (("precision", precision), ("strict precision", None), ("recall", recall)):
            values = [figures[key] for figures in homes_of_kind]
            defined = [value for value in values if value is not None] or [0.0]
            name = f"mean {key}, {kind}, {len(values)} homes"
            claims.append(Claim(name, float(np.mean(defined)), aim=aim, interval=mean_interval(defined)))
    return claims


def _claims(what: str, figures: Figures, aim: float | None) -> list[Claim]:
    precision, recall, average = (figures[key] for key in ("precision", "recall", "average_precision"))
    claims = [Claim(f"recall, {what}", recall or 0.0), Claim(f"average precision, {what}", average or 0.0)]
    return claims if precision is None else [Claim(f"precision, {what}", precision, aim=aim), *claims]


def measure_test() -> list[Claim]:
    """Measures the test guides."""
    return measure(False, TEST)


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or "", measure_test))
