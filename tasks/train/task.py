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
from tasks.train.loop import Training, tell
from tasks.train.settings import TrainSettings

STAGE = Stage(Checkpoint, __file__)


@task(**STAGE.options)
def train(home: str, corpus: Corpus, settings: TrainSettings, run: str | None = None) -> Checkpoint:
    """Learns a row for every token; goes on where a killed run stopped.

    Args:
        home: Where everything is.
        corpus: What to learn from.
        settings: Objective, encoder, rule, and how long.
        run: MLflow run that is told of every epoch; it changes nothing in what is learnt.

    Raises:
        Diverged: The loss is no number any more; there was no good epoch before.
    """
    logger = get_run_logger()
    workspace = Workspace(home)
    training = Training(workspace.folder(corpus), settings)
    partial = workspace.place(Checkpoint, STAGE.key(corpus, settings)).with_suffix(".partial")
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
    with STAGE.publish(home, corpus, settings) as draft:
        write_checkpoint(draft.folder / "checkpoint.safetensors", training.learner, position)
        draft.counts |= {"tokens": len(training.table), "touched": int(training.learner.touched.sum()), "epochs": position.epoch, "steps": training.learner.steps}
        draft.details |= {"history": training.history, "best_epoch": position.best}
    shutil.rmtree(partial, ignore_errors=True)
    return draft.artifact
