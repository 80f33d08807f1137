"""Defines the Prefect task that classifies the sub-titles in the catalogue of a home by pattern."""

import math
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from prefect import get_run_logger, task

from storage.catalogue.connection import Catalogue
from storage.catalogue.sub_titles import SUB_TITLE_PATTERNS, read_sub_titles, write_patterns
from storage.home.workspace import Workspace
from storage.tracking import Tracking
from tasks.subtitles.classifier import PatternClassifier, PatternTraining
from tasks.subtitles.confusion import confusion_table, count_confusion, plot_confusion, precisions
from tasks.subtitles.home import read_classifier, write_classifier
from tasks.subtitles.settings import PatternSettings

MAX_EXAMPLES = 3  # maximum number of sub-titles shown per pattern


@dataclass(frozen=True)
class PatternCounts:
    """Summary of the classification of the sub-titles of a home."""

    sub_titles: int  # number of distinct sub-titles
    seconds: float  # duration of the task
    counts: dict[str, int]  # number of distinct sub-titles by pattern
    by_rule: dict[str, int]  # number of distinct sub-titles whose pattern a rule decided, by pattern
    examples: dict[str, list[str]]  # most frequent sub-titles that the classifier decided, by pattern


@task(name="patterns", task_run_name="patterns", persist_result=False)
def find_patterns(home: str, settings: PatternSettings, use_stored: bool, run: str = "") -> PatternCounts:
    """Trains a classifier on the catalogue's sub-titles, and writes their patterns to the catalogue.

    Stores the classifier in the home, and logs loss, confusion matrix and counts to MLflow.

    Args:
        home: Path of a home with a catalogue.
        settings: Settings of the classifier and its training.
        use_stored: Whether to use the classifier that is stored in the home instead of training a classifier.
        run: Id of the MLflow run; "" to log nothing.

    Raises:
        PatternError: The rules find fewer than two patterns, or the home has no classifier.
    """
    workspace, started = Workspace(home), time.perf_counter()
    with Catalogue.open(workspace.home) as catalogue:
        table = read_sub_titles(catalogue)
    sub_titles = table["sub_title"].to_pylist()
    model = (
        read_classifier(workspace.home) if use_stored else _train(workspace.home, sub_titles, settings, run)
    )
    patterns = model.classify(sub_titles)
    rows = pa.table(
        [sub_titles, patterns.names, patterns.nullable_probabilities()], schema=SUB_TITLE_PATTERNS
    )
    with Catalogue.open(workspace.home) as catalogue:
        write_patterns(catalogue, rows.filter(pa.array([bool(name) for name in patterns.names])))
    result = PatternCounts(
        len(sub_titles),
        time.perf_counter() - started,
        patterns.count(),
        patterns.count(by_rules_only=True),
        patterns.examples(sub_titles, table["programmes"].to_pylist(), MAX_EXAMPLES),
    )
    get_run_logger().info(
        "%d of %d sub-titles have a pattern", sum(result.counts.values()), result.sub_titles
    )
    if run:
        metrics = {f"patterns/sub_titles/{name}": number for name, number in result.counts.items()}
        Tracking(workspace.home).log_progress(run, 0, {**metrics, "patterns/seconds": result.seconds})
    return result


def _train(home: Path, sub_titles: list[str], settings: PatternSettings, run: str) -> PatternClassifier:
    """Trains a classifier, writes it to the home, and logs its confusion matrix to the MLflow run ``run``."""
    logger, tracking = get_run_logger(), Tracking(home) if run else None
    training = PatternTraining(sub_titles, settings)
    for progress in training.run():
        logger.info("epoch %d of %d: loss %.3f", progress.step, progress.total, progress.metrics["loss"])
        if tracking:
            tracking.log_progress(run, progress.step, progress.metrics)
    model = training.finish()
    write_classifier(home, model)
    if tracking:
        counts = count_confusion(model, training.held_out_examples)
        figure = plot_confusion(model.classes, counts).to_html(include_plotlyjs=True, div_id="confusion")
        tracking.log_text(run, figure, "patterns/confusion.html")
        tracking.log_text(run, confusion_table(model.classes, counts), "patterns/confusion.csv")
        shares = zip(model.classes, precisions(counts).tolist(), strict=True)
        precision = {f"patterns/precision/{name}": share for name, share in shares if not math.isnan(share)}
        tracking.log_progress(run, 0, precision)
    return model
