"""Ablation study: measures how much each building block of the settings contributes to the scores.

Each trial trains the preset with one building block removed or replaced. All trials use the same splits into
training and held-out titles (folds) and the same seeds.
"""

from collections.abc import Sequence
from typing import Any

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import Field

from flows.defaults import DEFAULT_HOME
from flows.label_sources import read_label_sources
from flows.nightly_run import ComparisonResult
from flows.run_context import RUN_HOOKS, name_run, open_night
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, Settings, resolve_settings
from storage.artifacts import Corpus, Guide, Vocabulary
from tasks.ablate.plan import plan_ablation
from tasks.ablate.settings import ABLATION, AblationSettings
from tasks.ablate.task import conclude
from tasks.ablate.trial.task import measure
from tasks.ingest.task import ingest
from tasks.pool import open_pool
from tasks.pool_settings import count_workers
from tasks.preprocess.settings import PreprocessSettings
from tasks.preprocess.task import preprocess
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.task import tokenize

DEFAULT_ABLATION: Any = Field(ABLATION)
# Each thread waits for a trial, which runs in a process of the pool.
TASK_RUNNER: Any = ThreadPoolTaskRunner(max_workers=64)


@flow(name="ablate", flow_run_name=name_run, task_runner=TASK_RUNNER, **RUN_HOOKS)
def ablate(
    feeds: Feeds,
    preset: Preset = "laptop",
    changes: Changes = NO_CHANGES,
    home: str = DEFAULT_HOME,
    ablation: AblationSettings = DEFAULT_ABLATION,
    settings: Settings | None = None,
) -> ComparisonResult:
    """Measures how much each building block of the settings contributes to the scores on held-out titles.

    Args:
        feeds: XMLTV files, globs, folders or http(s) URLs; plain or compressed.
        preset: Settings to start from; each trial changes one building block of them.
        changes: Changes of the preset, such as train.epochs=5.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        ablation: Building blocks to measure, numbers of seeds and folds, and where trials run.
        settings: Complete settings that replace the preset; None: use the preset.
    """
    settings = resolve_settings(preset, changes, settings)
    plan = plan_ablation(settings, ablation)
    with (
        open_night(home, feeds, settings, keep=len(plan.trials), purpose="ablation run") as night,
        open_pool(ablation.pool, count_workers(ablation.workers), ablation.pool_address) as submit,
    ):
        guide = ingest(home, feeds, settings.ingest)
        corpora: dict[Any, Any] = {}
        for corpus_settings in dict.fromkeys(trial.corpus for trial in plan.trials):
            # The first corpus computes the sentence vectors, which the other corpora reuse.
            reusable_corpora = [corpus for _, corpus in corpora.values()][:1]
            corpora[corpus_settings] = submit_corpus(home, guide, *corpus_settings, reusable_corpora)
        submit_trial: Any = measure.submit
        futures = [
            submit_trial(home, *corpora[trial.corpus], trial.learning, submit) for trial in plan.trials
        ]
        results = plan.group_predictions(future.result() for future in futures)
        table = conclude(home, plan.blocks, results, plan.ineffective_blocks, ablation.resamples, night.run)
        return ComparisonResult(table=table, run=night.run, where=night.tracking.run_location(night.run))


def submit_corpus(
    home: str,
    guide: Guide,
    tokenize_settings: TokenizeSettings,
    preprocess_settings: PreprocessSettings,
    wait_for: Sequence[PrefectFuture[Corpus]],
) -> tuple[PrefectFuture[Vocabulary], PrefectFuture[Corpus]]:
    """Submits the tasks tokenize and preprocess, and returns the futures of the Vocabulary and the Corpus.

    The task preprocess starts when all futures in ``wait_for`` have finished.
    """
    vocabulary = tokenize.submit(home, guide, tokenize_settings)
    submit_preprocess: Any = preprocess.submit
    label_sources = read_label_sources(home, preprocess_settings)
    salt = tokenize_settings.splits.salt
    return vocabulary, submit_preprocess(
        home, guide, vocabulary, salt, preprocess_settings, label_sources, wait_for=wait_for
    )
