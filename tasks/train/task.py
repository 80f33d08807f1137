"""Stage train: Corpus to Checkpoint."""

from __future__ import annotations

import shutil

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext

from storage.artifacts import Checkpoint, Corpus
from storage.stages import Stage
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.train.checkpoint import KeptOnDisk, write_checkpoint
from tasks.train.loop import tell
from tasks.train.nights import find_checkpoint
from tasks.train.settings import TrainSettings
from tasks.train.warm_start import begin, write_memory

STAGE = Stage(Checkpoint, __file__)


def start_of(home: str, corpus: Corpus, settings: TrainSettings) -> Checkpoint | None:
    """The checkpoint that tonight's training starts from (tasks/train/nights.py); None without ``warm_start``, or where there is none."""
    return find_checkpoint(Workspace(home), STAGE.key(corpus, settings), corpus) if settings.warm_start else None


@task(**STAGE.options)
def train(home: str, corpus: Corpus, settings: TrainSettings, run: str | None = None, ancestor: Checkpoint | None = None) -> Checkpoint:
    """Learns a row for every token; goes on where a killed run stopped.

    Args:
        home: Where everything is.
        corpus: What to learn from.
        settings: Objective, encoder, rule, and how long.
        run: MLflow run that is told of every epoch; it changes nothing in what is learnt.
        ancestor: What ``start_of`` says; training starts with its rows, or cold where it must. None starts cold.

    Raises:
        Diverged: The loss is no number any more; there was no good epoch before.
    """
    logger = get_run_logger()
    workspace = Workspace(home)
    before = workspace.folder(ancestor) if ancestor else None
    training, started = begin(workspace.folder(corpus), settings, before)
    if settings.warm_start:
        logger.info("%s", started)
    partial = workspace.place(Checkpoint, STAGE.key(corpus, settings, ancestor)).with_suffix(".partial")
    kept = KeptOnDisk(partial)
    training.resume(kept)
    if training.position.epoch or training.position.batch:
        logger.info("going on after epoch %d of %d", training.position.epoch, training.settings.epochs)
    bar = create_progress_artifact(progress=0.0, key="training", description="Epochs of training done") if TaskRunContext.get() else None
    for progress in training.run(kept):
        if bar:
            update_progress_artifact(bar, progress=progress.percent)  # pyright: ignore[reportArgumentType]
        if run and progress.metrics:
            Tracking(home).log_progress(run, progress.step, {f"train/{name}": value for name, value in progress.metrics.items()})
        logger.info("%s", tell(progress))
    position = training.position
    with STAGE.publish(home, corpus, settings, ancestor) as draft:
        write_checkpoint(draft.folder / "checkpoint.safetensors", training.learner, position)
        write_memory(draft.folder, training, before if started.warm else None)
        draft.counts |= {"tokens": len(training.table), "touched": int(training.learner.touched.sum()), "epochs": position.epoch, "steps": training.learner.steps}
        draft.details |= {"history": training.history, "best_epoch": position.best, "started": str(started)}
        draft.details |= {"base": STAGE.key(corpus, settings), "corpus": corpus.digest, "lineage": workspace.details(corpus).get("lineage")}
        draft.details |= {"ancestor": {"path": ancestor.path, "digest": ancestor.digest} if ancestor else None}
    shutil.rmtree(partial, ignore_errors=True)
    return draft.artifact
