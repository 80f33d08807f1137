"""The ablation: from a preset, one building block taken away or swapped at a time, on folds and seeds."""

from collections.abc import Sequence
from typing import Any

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import Field

from flows.label_sources import read_label_sources
from flows.ownership import tag_with_home
from flows.run_context import close_crashed, name_run, open_night
from flows.settings import NO_CHANGES, Changes, Feeds, Preset, Settings, settle
from flows.tune import Compared
from storage.artifacts import Corpus, Guide, Vocabulary
from tasks.ablate.plan import base_of, plan_ablation
from tasks.ablate.settings import ABLATION, AblationSettings
from tasks.ablate.task import conclude
from tasks.ablate.trial.task import measure
from tasks.ingest.task import ingest
from tasks.pool import AUTOMATIC, cores, open_pool
from tasks.preprocess.settings import PreprocessSettings
from tasks.preprocess.task import preprocess
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.task import tokenize

ALL: Any = Field(ABLATION)
# Each of its threads holds a trial that waits for a process of the pool, or works there.
THREADS: Any = ThreadPoolTaskRunner(max_workers=64)


@flow(
    name="ablate",
    flow_run_name=name_run,
    task_runner=THREADS,
    on_running=[tag_with_home],
    on_crashed=[close_crashed],
    on_cancellation=[close_crashed],
)
def ablate(
    feeds: Feeds,
    preset: Preset = "laptop",
    changes: Changes = NO_CHANGES,
    home: str = "guidespace-home",
    ablation: AblationSettings = ALL,
    settings: Settings | None = None,
) -> Compared:
    """Says what each building block is worth, on the same held-out titles, and which ones do not pay.

    Args:
        feeds: XMLTV files, globs, folders or http(s) URLs; plain or compressed.
        preset: Settings to start from; each block is one change of them.
        changes: What differs from the preset, such as train.epochs=5.
        home: Folder that holds everything a run writes: catalogue, artifacts, MLflow's database.
        ablation: Which blocks, how many seeds and folds, and where trials run.
        settings: All settings one by one, in place of the preset's; None: as the preset has them.
    """
    settings = settle(preset, changes, settings)
    plan = plan_ablation(settings, ablation)
    workers = cores() if ablation.workers == AUTOMATIC else ablation.workers
    with (
        open_night(home, feeds, settings, keep=len(plan.trials)) as night,
        open_pool(ablation.pool, max(1, workers), ablation.pool_address) as submit,
    ):
        guide = ingest(home, feeds, settings.ingest)
        corpora: dict[Any, Any] = {}
        for way in dict.fromkeys(trial.corpus for trial in plan.trials):
            first = [corpus for _, corpus in corpora.values()][:1]  # it encodes the texts of all
            corpora[way] = make_corpus(home, guide, *way, first)
        begin: Any = measure.submit
        trials = [begin(home, *corpora[own.corpus], own.learning, submit) for own in plan.trials]
        answers = plan.gather(trial.result() for trial in trials)
        bases = {block.name: base_of(block) for block in plan.blocks}
        table = conclude(home, plan.blocks, answers, bases, plan.left_out, ablation.resamples, night.run)
        return Compared(table=table, run=night.run, where=night.tracking.where(night.run))


def make_corpus(
    home: str,
    guide: Guide,
    tokenized: TokenizeSettings,
    preprocessed: PreprocessSettings,
    first: Sequence[PrefectFuture[Corpus]],
) -> tuple[PrefectFuture[Vocabulary], PrefectFuture[Corpus]]:
    """Submits the stages up to the Corpus, which begins when ``first`` are done."""
    vocabulary = tokenize.submit(home, guide, tokenized)
    begin: Any = preprocess.submit
    label_sources = read_label_sources(home, preprocessed)
    salt = tokenized.splits.salt
    return vocabulary, begin(home, guide, vocabulary, salt, preprocessed, label_sources, wait_for=first)
