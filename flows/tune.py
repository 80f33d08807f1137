"""Compares optimizers at several embedding sizes and learning rates, or searches over both."""

from dataclasses import dataclass

from prefect import flow

from flows.label_sources import read_label_sources
from flows.ownership import tag_with_home
from flows.run_context import close_crashed, name_run, open_night
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, Settings, resolve_settings
from flows.task_runner import task_runner
from storage.artifacts import Corpus
from tasks.ingest.task import ingest
from tasks.preprocess.task import preprocess
from tasks.tokenize.task import tokenize
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import entries
from tasks.train.tuning.settings import TuningSettings
from tasks.train.tuning.task import log_ranking, log_searches, search, test_ranges, train_candidates

ALL_OPTIMIZERS = TuningSettings()


@dataclass(frozen=True, kw_only=True)
class ComparisonResult:
    """The result of a comparison."""

    table: str  # Markdown: the preset's optimizer, then a row per optimizer (or search) and size
    run: str  # id of the parent MLflow run
    where: str  # how to open that run


@flow(name="searches", flow_run_name="searches", on_running=[tag_with_home])
def run_searches(home: str, corpus: Corpus, settings: TrainSettings, tuning: TuningSettings, run: str) -> str:
    """Runs the searches one after the other with this flow's task runner; returns a Markdown table."""
    outcomes = [
        search(home, corpus, settings, tuning, method, size, run)
        for size in tuning.sizes
        for method in tuning.searches
    ]
    return log_searches(home, outcomes, tuning, run)


@flow(
    name="tune",
    flow_run_name=name_run,
    on_running=[tag_with_home],
    on_crashed=[close_crashed],
    on_cancellation=[close_crashed],
)
def tune(
    feeds: Feeds,
    preset: Preset = "laptop",
    changes: Changes = NO_CHANGES,
    home: str = "guidespace-home",
    tuning: TuningSettings = ALL_OPTIMIZERS,
    settings: Settings | None = None,
) -> ComparisonResult:
    """Compares optimizers with the optimizer of the preset.

    Args:
        feeds: XMLTV files, globs, folders or http(s) URLs; plain or compressed.
        preset: Settings to start from.
        changes: Changes of the preset, such as train.epochs=5.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        tuning: Optimizers, sizes, rates, searches, and where trainings run.
        settings: All settings, in place of those of the preset; None: those of the preset.
    """
    settings = resolve_settings(preset, changes, settings)
    with open_night(home, feeds, settings) as night:
        guide = ingest(home, feeds, settings.ingest)
        vocabulary = tokenize(home, guide, settings.tokenize)
        label_sources = read_label_sources(home, settings.preprocess)
        salt = settings.tokenize.splits.salt
        corpus = preprocess(home, guide, vocabulary, salt, settings.preprocess, label_sources)
        inputs = home, corpus, settings.train, tuning, night.run
        tables = [test_ranges(*inputs)] if tuning.range_test else []
        if tuning.searches:
            runner = task_runner(tuning.pool, tuning.workers, tuning.pool_address)
            tables.append(run_searches.with_options(task_runner=runner)(*inputs))
        else:
            courses = [
                train_candidates(home, corpus, entry, size, tuning, night.run)
                for size in tuning.sizes
                for entry in entries(settings.train, tuning.optimizers)
            ]
            tables.append(log_ranking(home, courses, settings.train.optimizer.name, night.run))
        return ComparisonResult(table="\n".join(tables), run=night.run, where=night.tracking.where(night.run))
