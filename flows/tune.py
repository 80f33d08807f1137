"""The comparison of optimizers: each at three sizes, on the same batches, with a few learning rates; or
searches over rules and rates at the same budget.
"""

from dataclasses import dataclass

from prefect import flow

from flows.label_sources import read_label_sources
from flows.ownership import tag_with_home
from flows.run_context import close_crashed, name_run, open_night
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, Settings, settle
from flows.task_runner import task_runner
from storage.artifacts import Corpus
from tasks.ingest.task import ingest
from tasks.preprocess.task import preprocess
from tasks.tokenize.task import tokenize
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import entries
from tasks.train.tuning.settings import TuningSettings
from tasks.train.tuning.task import log_ranking, log_searches, search, test_ranges, train_candidates

EVERYONE = TuningSettings()


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Where the result of a comparison is."""

    table: (
        str  # as markdown: the score of the presets' optimizer, then a row an optimizer (or search) and size
    )
    run: str  # MLflow run id of the parent
    where: str  # how a person opens that run


@flow(name="searches", flow_run_name="searches", on_running=[tag_with_home])
def run_searches(home: str, corpus: Corpus, settings: TrainSettings, tuning: TuningSettings, run: str) -> str:
    """Searches one after the other, each with this flow's task runner; their table as Markdown."""
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
    tuning: TuningSettings = EVERYONE,
    settings: Settings | None = None,
) -> Compared:
    """Compares all optimizers, and shows which one the presets use and why.

    Args:
        feeds: XMLTV files, globs, folders or http(s) URLs; plain or compressed.
        preset: Settings to start from; its optimizer is called the presets'.
        changes: What differs from the preset, such as train.epochs=5.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        tuning: Which optimizers, at which sizes and rates; searches, and where their trainings run.
        settings: All settings one by one, in place of the preset's; None: as the preset has them.
    """
    settings = settle(preset, changes, settings)
    with open_night(home, feeds, settings) as night:
        guide = ingest(home, feeds, settings.ingest)
        vocabulary = tokenize(home, guide, settings.tokenize)
        label_sources = read_label_sources(home, settings.preprocess)
        salt = settings.tokenize.splits.salt
        corpus = preprocess(home, guide, vocabulary, salt, settings.preprocess, label_sources)
        given = home, corpus, settings.train, tuning, night.run
        tables = [test_ranges(*given)] if tuning.range_test else []
        if tuning.searches:
            runner = task_runner(tuning.pool, tuning.workers, tuning.pool_address)
            tables.append(run_searches.with_options(task_runner=runner)(*given))
        else:
            courses = [
                train_candidates(home, corpus, entry, size, tuning, night.run)
                for size in tuning.sizes
                for entry in entries(settings.train, tuning.optimizers)
            ]
            tables.append(log_ranking(home, courses, settings.train.optimizer.name, night.run))
        return Compared(table="\n".join(tables), run=night.run, where=night.tracking.where(night.run))
