"""Defines the flow ``tune``, which compares optimizers at several embedding sizes and learning rates.

Instead of all combinations, it can run hyper-parameter searches over optimizers and learning rates.
"""

from prefect import flow

from flows.defaults import DEFAULT_HOME
from flows.label_sources import read_label_sources
from flows.nightly_run import ComparisonResult
from flows.ownership import tag_with_home
from flows.run_context import RUN_HOOKS, name_run, open_night
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, Settings, resolve_settings
from flows.task_runner import task_runner
from storage.artifacts import Corpus
from tasks.ingest.task import ingest
from tasks.preprocess.task import preprocess
from tasks.tokenize.task import tokenize
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import list_candidates
from tasks.train.tuning.settings import TuningSettings
from tasks.train.tuning.task import log_ranking, log_searches, search, train_candidates

DEFAULT_TUNING = TuningSettings()


@flow(name="searches", flow_run_name="searches", on_running=[tag_with_home])
def run_searches(home: str, corpus: Corpus, settings: TrainSettings, tuning: TuningSettings, run: str) -> str:
    """Runs searches over optimizers and learning rates, and returns the results as a Markdown table.

    The searches run one after the other; the trainings of a search use the task runner of this flow.
    """
    outcomes = [
        search(home, corpus, settings, tuning, method, size, run)
        for size in tuning.sizes
        for method in tuning.searches
    ]
    return log_searches(home, outcomes, tuning, run)


@flow(name="tune", flow_run_name=name_run, **RUN_HOOKS)
def tune(
    feeds: Feeds,
    preset: Preset = "laptop",
    changes: Changes = NO_CHANGES,
    home: str = DEFAULT_HOME,
    tuning: TuningSettings = DEFAULT_TUNING,
    settings: Settings | None = None,
) -> ComparisonResult:
    """Compares other optimizers with the optimizer of the preset, each at several learning rates.

    Args:
        feeds: XMLTV files, globs, folders or http(s) URLs; plain or compressed.
        preset: Settings to start from.
        changes: Changes of the preset, such as train.epochs=5.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        tuning: Optimizers, embedding sizes, learning rates, searches, and where trainings run.
        settings: Complete settings that replace the preset; None: use the preset.
    """
    settings = resolve_settings(preset, changes, settings)
    with open_night(home, feeds, settings, purpose="tuning run") as night:
        guide = ingest(home, feeds, settings.ingest)
        vocabulary = tokenize(home, guide, settings.tokenize)
        label_sources = read_label_sources(home, settings.preprocess)
        salt = settings.tokenize.splits.salt
        corpus = preprocess(home, guide, vocabulary, salt, settings.preprocess, label_sources)
        if tuning.searches:
            runner = task_runner(tuning.pool, tuning.workers, tuning.pool_address)
            table = run_searches.with_options(task_runner=runner)(
                home, corpus, settings.train, tuning, night.run
            )
        else:
            runs_by_optimizer = [
                train_candidates(home, corpus, candidate, size, tuning, night.run)
                for size in tuning.sizes
                for candidate in list_candidates(settings.train, tuning.optimizers)
            ]
            table = log_ranking(home, runs_by_optimizer, settings.train.optimizer.name, night.run)
        return ComparisonResult(table=table, run=night.run, where=night.tracking.run_location(night.run))
