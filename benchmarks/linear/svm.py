"""Online SVM beside LinearSVC, SGDClassifier and Vowpal Wabbit, on titles and on 250,000 features."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.claims import Claim, guides, is_installed
from benchmarks.processes import call_apart, peak
from benchmarks.quality.folds import Fold, make_folds
from storage.arrays import Ragged
from tasks.baselines.predictions import predict_from_scores
from tasks.baselines.tfidf import LinearSvm, TfidfFeatures
from tasks.scoring.folds import SALTS
from tasks.scoring.protocols import FORMS, PROTOCOLS

FEATURES, PRESENT = 250_000, 25  # of the stream: in total, and per sample
STREAM_COST = 0.01  # best of .2 to .001 for one pass, for four, and for LinearSVC
LOSS = 0.005  # permitted loss of accuracy compared with a rival


class World(NamedTuple):
    """Training samples and test samples."""

    rows: Any  # CSR matrix of samples
    labels: Ragged
    label_count: int
    asked: Any


class Result(NamedTuple):
    """Median CPU seconds of training, its MiB beyond its inputs, and margins (test samples, labels)."""

    seconds: float
    above: float
    margins: np.ndarray


def _timed(learn: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    before, taken, learnt = peak(), [], None
    for _ in range(repeats):
        learnt, started = None, time.process_time()
        learnt = learn()
        taken.append(time.process_time() - started)
    return statistics.median(taken), peak() - before, learnt


def ours(world: World, cost: float, epochs: int, repeats: int) -> Result:
    from tasks.linear.svm import OnlineSvm

    def learn(rows: Any, labels: Ragged) -> OnlineSvm:
        machine = OnlineSvm(rows.shape[1], world.label_count, cost=cost, epochs=epochs)
        return machine.partial_fit(rows, labels)

    learn(world.rows[:10, :100], world.labels.between(0, 10))  # compiles
    seconds, above, learnt = _timed(lambda: learn(world.rows, world.labels), repeats)
    return Result(seconds, above, learnt.decision_function(world.asked))


def scikit_learn(world: World, kind: str, options: dict[str, Any], repeats: int) -> Result:
    """Trains LinearSVC or SGDClassifier, one label after the other."""
    from sklearn import svm
    from sklearn.linear_model import SGDClassifier

    machine = {"LinearSVC": svm.LinearSVC, "SGDClassifier": SGDClassifier}[kind](random_state=0, **options)
    # float64, which they use internally, saves a conversion per label
    rows, targets = world.rows.astype(np.float64), world.labels.multi_hot(world.label_count)

    def learn() -> tuple[np.ndarray, np.ndarray]:
        weights = np.zeros((world.label_count, rows.shape[1]), dtype=np.float32)
        intercepts = np.full(world.label_count, -np.inf)
        for label in np.flatnonzero(targets.any(axis=0)):
            machine.fit(rows, targets[:, label])
            weights[label], intercepts[label] = machine.coef_[0], np.asarray(machine.intercept_).item()
        return weights, intercepts

    seconds, above, (weights, intercepts) = _timed(learn, repeats)
    return Result(seconds, above, world.asked @ weights.T + intercepts)


def vowpal_wabbit(world: World, options: str, repeats: int) -> Result:
    """Trains one label; reads samples from the cache of Vowpal Wabbit, so that parsing hardly counts."""
    from vowpalwabbit import Workspace  # pyright: ignore[reportMissingImports]

    def line(rows: Any, row: int) -> str:
        places = slice(rows.indptr[row], rows.indptr[row + 1])
        pairs = zip(rows.indices[places].tolist(), rows.data[places].tolist(), strict=True)
        return "| " + " ".join(f"{feature}:{value:.6g}" for feature, value in pairs)

    with tempfile.TemporaryDirectory() as folder:
        samples, shared = Path(folder) / "samples", f"--quiet --holdout_off -b 18 {options}"
        held = ("1" if count else "-1" for count in world.labels.lengths)
        samples.write_text(
            "".join(f"{sign} {line(world.rows, row)}\n" for row, sign in enumerate(held)), encoding="utf-8"
        )
        Workspace(f"{shared} -d {samples} -c").finish()

        def learn() -> None:
            Workspace(f"{shared} -d {samples} -c -f {folder}/model").finish()

        seconds, above, _ = _timed(learn, repeats)
        learnt = Workspace(f"--quiet -t -i {folder}/model")
        margins = [learnt.predict(line(world.asked, row)) for row in range(world.asked.shape[0])]
        learnt.finish()
    return Result(seconds, above, np.array(margins, dtype=np.float32)[:, None])


def titles(quick: bool) -> Iterator[Claim]:
    """Compares on four English guides together, title only and with airing context, each fold once."""
    names = ("AU1",) if quick else ("UK1", "US1", "AU1", "ZA1")
    with tempfile.TemporaryDirectory() as folder:
        folds = make_folds(Path(folder), guides(*names), SALTS[: 1 if quick else 3], encode=False)
        for form in FORMS:
            yield from _titles(f"{' '.join(names)}, {form}", folds, form)


def _titles(about: str, folds: Sequence[Fold], form: str) -> Iterator[Claim]:
    setting = LinearSvm()
    systems: dict[str, tuple[Callable[..., Result], Any]] = {
        "ours": (ours, (setting.cost, setting.epochs, 3)),
        "LinearSVC, C = .2, tolerance 1": (scikit_learn, ("LinearSVC", {"C": setting.cost, "tol": 1.0}, 1)),
        "LinearSVC, its defaults": (scikit_learn, ("LinearSVC", {}, 1)),
        "SGDClassifier": (scikit_learn, ("SGDClassifier", {}, 1)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    correct: dict[str, list[np.ndarray]] = {name: [] for name in systems}
    for fold in folds:
        corpus, inputs, training = fold.titles, fold.inputs(form), fold.titles.labelled("train")
        held = np.concatenate([corpus.labelled(protocol) for protocol in PROTOCOLS])
        labels, truth = corpus.labels.take(training), corpus.labels.take(held).multi_hot(corpus.label_count)
        frequency = np.bincount(labels.values, minlength=corpus.label_count)
        features, rows = TfidfFeatures().fit_transform(inputs.take(training))
        world = World(rows, labels, corpus.label_count, features.transform(inputs.take(held)))
        for name, (call, arguments) in systems.items():
            result = call_apart(call, world, *arguments, rival=name != "ours", threads=1)
            margins = np.where(frequency > 0, result.margins, -np.inf).astype(np.float64)
            top = predict_from_scores(margins, margins > 0, frequency).top
            seconds[name].append(result.seconds)
            correct[name].append(truth[np.arange(len(top)), top])
    accuracy = {name: float(np.concatenate(hits).mean()) for name, hits in correct.items()}
    held_out = sum(map(len, correct["ours"]))
    for rival in list(systems)[1:]:
        mine, theirs = (statistics.median(seconds[name]) for name in ("ours", rival))
        yield Claim(f"{about}, CPU s", mine, rival, theirs, aim=0.1, better="less")
        yield Claim(
            f"{about}, accuracy on {held_out:,} held-out titles of {len(folds)} folds",
            accuracy["ours"],
            rival,
            accuracy[rival],
            aim=1 - LOSS / accuracy[rival],
        )


def stream(samples: int, label_count: int) -> tuple[World, np.ndarray]:
    """Makes samples of 25 of 250,000 features; returns them and the labels of the last 10,000, the test
    samples.

    Few features are in most samples. With one label, 5 % of the labels are noise; with several, each sample
    has one.
    """
    rng = np.random.default_rng(5)
    drawn = (FEATURES ** rng.random((samples, PRESENT))).astype(np.int32) - 1
    offsets = np.arange(samples + 1) * PRESENT
    rows = csr_matrix((np.ones(drawn.size, np.float32), drawn.ravel(), offsets), (samples, FEATURES))
    rows.sum_duplicates()
    scores = rows @ rng.standard_normal((FEATURES, label_count), dtype=np.float32)
    if label_count == 1:
        held = (scores > 0) ^ (rng.random(scores.shape) < 0.05)
    else:
        held = np.arange(label_count) == scores.argmax(axis=1)[:, None]
    learnt = samples - 10_000
    labels = Ragged.from_rows([np.flatnonzero(row) for row in held[:learnt]])
    return World(rows[:learnt], labels, label_count, rows[learnt:]), held[learnt:]


def _accuracy(margins: np.ndarray, held: np.ndarray) -> float:
    if margins.shape[1] == 1:
        return float(((margins > 0) == held).mean())
    return float(held[np.arange(len(held)), margins.argmax(axis=1)].mean())


def streams(quick: bool) -> Iterator[Claim]:
    """Compares one pass over a stream, with one label and with 125 labels."""
    repeats, wabbit = 1 if quick else 3, is_installed("vowpalwabbit")
    for label_count, samples in ((1, 210_000), (125, 60_000)):
        world, held = stream(20_000 if quick else samples, label_count)
        count = world.rows.shape[0]
        about = f"stream, {PRESENT} of {FEATURES:,} features a sample, labels: {label_count}"
        one_pass = {"max_iter": 1, "tol": None, "average": True}
        rivals: list[tuple[str, int, Any]] = [  # with our passes
            ("SGDClassifier, averaged", 1, (scikit_learn, world, "SGDClassifier", one_pass))
        ]
        if label_count == 1:
            options = {"C": STREAM_COST, "tol": 1.0}
            rivals += [("LinearSVC, C = .01, tolerance 1", 4, (scikit_learn, world, "LinearSVC", options))]
            if wabbit:
                rivals += [("Vowpal Wabbit, hinge", 1, (vowpal_wabbit, world, "--loss_function hinge"))]
        for rival, epochs, arguments in rivals:
            mine = call_apart(ours, world, STREAM_COST, epochs, repeats, threads=1)
            theirs = call_apart(*arguments, repeats, rival=True, threads=1)
            passes = f"{about}, our passes: {epochs}"
            speeds = {"value": count / mine.seconds, "rival": rival, "rival_value": count / theirs.seconds}
            yield Claim(f"{passes}, samples/s", **speeds, aim=1)
            memory = {"value": mine.above, "rival": rival, "rival_value": theirs.above}
            yield Claim(f"{passes}, MiB above imports and inputs", **memory, better=None)
            accuracy, rival_accuracy = (_accuracy(result.margins, held) for result in (mine, theirs))
            yield Claim(f"{passes}, accuracy", accuracy, rival, rival_accuracy, better=None)


def lookups(quick: bool) -> Iterator[Claim]:
    """Measures the conversion of named features to rows."""
    samples = 10_000 if quick else 100_000
    mine, theirs = call_apart(look_up, samples), call_apart(vectorize, samples, rival=True)
    yield Claim(
        f"named features to rows that grow, {PRESENT} a sample, samples/s",
        samples / mine,
        "DictVectorizer",
        samples / theirs,
        aim=1,
    )


def named(samples: int) -> list[dict[str, float]]:
    drawn = (FEATURES ** np.random.default_rng(5).random((samples, PRESENT))).astype(np.int64)
    return [dict.fromkeys(map(str, features), 1.0) for features in drawn.tolist()]


def look_up(samples: int) -> float:
    from tasks.linear.lookup import Lookup

    world = named(samples)
    return _timed(lambda: Lookup().fit_transform(world), 3)[0]


def vectorize(samples: int) -> float:
    from sklearn.feature_extraction import DictVectorizer

    world = named(samples)
    return _timed(lambda: DictVectorizer().fit_transform(world), 3)[0]


def claims(quick: bool) -> list[Claim]:
    """Measures all claims of this file."""
    return [*titles(quick), *streams(quick), *lookups(quick)]
