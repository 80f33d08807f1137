"""Accuracy and precision of k-NN and rivals on held-out titles of 14 guides (docs/benchmark.md).

Each guide is split five times, by the salts guidespace-1 to guidespace-5; all systems answer the same titles.
A figure is the mean over the held-out titles of the five folds; its interval is 1.96 standard errors of a
bootstrap that draws families (titles with the same first content words), each with its titles of all folds.
The mean over guides has equal weights.

Rivals that are trained use only the title, with the same tokens as ours (MiniLM uses the text), in a separate
process without our environment. Their number of epochs is chosen on the held-out titles themselves, which
favours them.
"""

import argparse
import itertools
import json
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.claims import ROOT, Claim, commit, guides, table
from benchmarks.processes import call_apart
from benchmarks.quality.folds import Fold, answer, make_folds
from benchmarks.rivals.contest import Contest, Rival
from benchmarks.rivals.doc2vec import Doc2Vec
from benchmarks.rivals.fasttext import FastText
from benchmarks.rivals.minilm import MiniLM
from benchmarks.rivals.static_embedding import StaticEmbedding
from tasks.baselines import Majority, SentenceKnn, TfidfKnn, TfidfSvm, TfidfSvmSentence
from tasks.scoring.folds import Figure, ScoresByCell, mean_scores
from tasks.scoring.protocols import FORMS, PROTOCOLS

THREADS, OURS, METRICS = 2, "GuideSpace", ("accuracy", "precision_at_10")
GUIDES = (
    *("UK1", "US1", "AU1", "ZA1", "FR1", "IT1", "PT1", "NL1", "DK1", "NO1", "SK1", "GR1"),
    *("magenta_de_2022-05", "magenta_de_2022-06"),
)
BASELINES = (Majority(), TfidfKnn(), SentenceKnn(), TfidfSvm(), TfidfSvmSentence())
LEARNT: tuple[Rival, ...] = (
    FastText("fastText", "tokens"),
    FastText("fastText with its n-grams", "words", longest_ngram=5),
    Doc2Vec(epochs=(40,)),
    StaticEmbedding(),
    MiniLM(),
)
SYSTEMS = (OURS, *(baseline.name for baseline in BASELINES), *(rival.name for rival in LEARNT))
ENGLISH = {"UK1", "US1", "AU1", "ZA1"}  # guides on which MiniLM, an English model, is measured
UNTRAINED = {TfidfKnn().name, SentenceKnn().name, MiniLM.name}  # vectors that have seen no category
FAST = SYSTEMS[: 1 + len(BASELINES)]  # systems that are measured by default
RESULTS, PAGE = Path(__file__).with_name("quality.json"), ROOT / "docs" / "benchmark.md"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
Results = dict[str, dict[str, Any]]  # guide to system to {"commit": …, FORM: {PROTOCOL: figures}}


def measure_guide(guide: str, systems: Sequence[str], measured: str = "") -> dict[str, Any]:
    """Returns the figures of each system on a guide; ``measured`` is the commit."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        folds = make_folds(Path(folder), guides(guide))
        for name in systems:
            if name == MiniLM.name and guide not in ENGLISH:
                continue
            print(f"{guide}: {name}", file=sys.stderr, flush=True)
            try:
                figures[name] = {"commit": measured, **_figures(_answers(name, folds))}
            except ImportError as missing:
                print(f"{name} is left out: {missing}", file=sys.stderr)
    return figures


def _answers(name: str, folds: Sequence[Fold]) -> list[ScoresByCell]:
    """Returns the predictions of a system on each fold."""
    if name == OURS:
        return [fold.answer_ours() for fold in folds]
    for baseline in BASELINES:
        if name == baseline.name:
            return [answer(fold, baseline) for fold in folds]
    rival = next(rival for rival in LEARNT if rival.name == name)
    tried = [[_learn(rival, fold, epochs) for fold in folds] for epochs in rival.epochs]
    return max(tried, key=lambda own: sum(part.correct.sum() for fold in own for part in fold.values()))


def _learn(rival: Rival, fold: Fold, epochs: int) -> ScoresByCell:
    vectors = call_apart(_train, rival, fold.folder, epochs, rival=True, threads=THREADS)
    return fold.predict_held_out("title_only", vectors)


def _train(rival: Rival, corpus: Path, epochs: int) -> np.ndarray:
    """Trains a rival and returns its unit vectors; called in a separate process."""
    vectors = rival.train(Contest(corpus), epochs, 1, THREADS).vectors()
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def _figures(answers: Sequence[ScoresByCell]) -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = {}
    for form, protocol in answers[0]:
        held = [fold[form, protocol] for fold in answers if (form, protocol) in fold]
        figures.setdefault(form, {})[protocol] = mean_scores(held)
    return figures


def mean_over_guides(results: Results, system: str, form: str, protocol: str, name: str) -> Figure | None:
    """Returns the mean of a figure over guides with equal weights; None if no guide has it."""
    cells = (own.get(system, {}).get(form, {}).get(protocol, {}).get(name) for own in results.values())
    figures = [Figure(*cell) for cell in cells if cell]
    if not figures:
        return None
    error = float(np.sqrt(np.sum([own.error**2 for own in figures]))) / len(figures)
    return Figure(float(np.mean([own.value for own in figures])), error, len(figures))


def page(results: Results) -> str:
    """Formats the results as Markdown: means over guides by form, and accuracy by guide (title only)."""
    systems = [name for name in SYSTEMS if any(name in own for own in results.values())]
    lines: list[str] = []
    for form in FORMS:
        heads = [f"{protocol}, {name}" for protocol in PROTOCOLS for name in ("accuracy", "P@10")]
        lines += [f"### Mean over guides, {form}", "", *_head("system", "guides", *heads)]
        for system in systems:
            figures = [
                mean_over_guides(results, system, form, protocol, name)
                for protocol in PROTOCOLS
                for name in METRICS
            ]
            if any(figures):
                count = max(figure.n for figure in figures if figure)
                lines.append(_row([system, str(count), *map(_cell, figures)]))
        lines.append("")
    for protocol in PROTOCOLS:
        lines += [f"### Accuracy by guide, title_only, {protocol}", "", *_head("guide", "titles", *systems)]
        for guide in [name for name in GUIDES if name in results]:
            own = {name: results[guide].get(name, {}).get("title_only", {}).get(protocol) for name in systems}
            titles = next((str(cell["accuracy"][2]) for cell in own.values() if cell), "–")
            numbers = [f"{cell['accuracy'][0]:.3f}" if cell else "–" for cell in own.values()]
            lines.append(_row([guide, titles, *numbers]))
        lines.append("")
    commits = defaultdict(list)
    for name in systems:
        measured = {own[name]["commit"] for own in results.values() if name in own}
        commits[", ".join(sorted(measured))].append(name)
    made = "; ".join(f"{names} ({', '.join(measured)})" for names, measured in commits.items())
    return "\n".join([*lines, *textwrap.wrap(f"Commits: {made}.", 110)])


def _cell(figure: Figure | None) -> str:
    return f"{figure.value:.3f} ± {figure.margin:.3f}" if figure else "–"


def _head(*names: str) -> list[str]:
    return [_row(names), _row(["---", *["---:"] * (len(names) - 1)])]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def claims(results: Results) -> list[Claim]:
    """Makes the claims that compare our mean over the guides of each rival with the rival's.

    Precision@10 is compared only with vectors that are trained, as ours are.
    """
    made = []
    for form, protocol, name, rival in itertools.product(FORMS, PROTOCOLS, METRICS, SYSTEMS[1:]):
        if name != "accuracy" and rival in UNTRAINED:
            continue
        shared_results = {guide: systems for guide, systems in results.items() if rival in systems}
        ours, theirs = (
            mean_over_guides(shared_results, system, form, protocol, name) for system in (OURS, rival)
        )
        if ours and theirs:
            made.append(
                Claim(
                    f"{name} on {protocol}, {form}, mean of {ours.n} guides",
                    ours.value,
                    rival,
                    theirs.value,
                    aim=1,
                    interval=ours.interval,
                    rival_interval=theirs.interval,
                )
            )
    return made


def write(results: Results) -> None:
    """Adds results to benchmarks/quality/quality.json and writes all its results to docs/benchmark.md."""
    stored: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for guide, systems in results.items():
        stored.setdefault(guide, {}).update(systems)
    RESULTS.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{page(stored)}\n\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--guides", nargs="+", default=GUIDES, choices=GUIDES, metavar="GUIDE")
    parser.add_argument("--systems", nargs="+", default=FAST, choices=[*SYSTEMS, "all"], metavar="SYSTEM")
    parser.add_argument("--full", action="store_true", help="all guides: the default")
    parser.add_argument("--quick", action="store_true", help="DK1 and two baselines alone")
    parser.add_argument("--json", action="store_true", help="print claims as JSON, for other programs")
    parser.add_argument("--write", action="store_true", help="add the results to docs/benchmark.md")
    options = parser.parse_args(arguments)
    chosen = SYSTEMS if "all" in options.systems else tuple(options.systems)
    if options.quick:
        options.guides, chosen = ("DK1",), (OURS, "tfidf_svm")
    save: Callable[[Results], None] = write if options.write else lambda _: None
    results: Results = {}
    measured = commit()  # before the page is written, which changes the state of the commit
    for guide in options.guides:
        results[guide] = measure_guide(guide, chosen, measured)
        save({guide: results[guide]})
    made = claims(results)
    rows = [claim.row() for claim in made]
    print(json.dumps(rows, indent=1) if options.json else f"{page(results)}\n\n{table(made)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
