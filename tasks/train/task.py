"""Prefect task of the stage train, which learns the embedding rows of tokens from the titles of a Corpus."""

import shutil

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext

from storage.artifacts import Checkpoint, Corpus
from storage.home.workspace import Workspace
from storage.stages import Stage
from storage.tracking import Tracking
from tasks.train.settings import TrainSettings

STAGE = Stage(Checkpoint, __file__)


@task(**STAGE.options)
def train(home: str, corpus: Corpus, settings: TrainSettings, run: str | None = None) -> Checkpoint:
    """Trains the embedding rows of a Corpus and publishes a Checkpoint. Resumes an interrupted training.

    If ``run`` is the id of an MLflow run, the metrics of each epoch are logged to this run.
    """
    from tasks.train.checkpoint import Checkpointer, write_checkpoint  # these modules import torch
    from tasks.train.loop import Training, format_progress

    logger, workspace, progress_bar = get_run_logger(), Workspace(home), None
    folder = workspace.folder(corpus)
    training = Training(folder, settings)
    partial_folder = workspace.artifact_folder(Checkpoint, STAGE.key(corpus, settings)).with_suffix(
        ".partial"
    )
    training.resume(checkpointer := Checkpointer(partial_folder))
    position = training.position
    logger.info("%s", training.trainer.step_description)
    if position.epoch or position.batch:
        logger.info("resuming after epoch %d of %d", position.epoch, settings.epochs)
    if TaskRunContext.get():
        progress_bar = create_progress_artifact(
            progress=0.0, key="training", description="Finished epochs of training, in percent"
        )
    for progress in training.run(checkpointer):
        if progress_bar:
            update_progress_artifact(progress_bar, progress=progress.percent)  # pyright: ignore[reportArgumentType]
        if run and progress.metrics:
            metrics = {f"train/{name}": value for name, value in progress.metrics.items()}
            Tracking(home).log_progress(run, progress.step, metrics)
        logger.info("%s", format_progress(progress))
    with STAGE.publish(home, corpus, settings) as draft:
        write_checkpoint(draft.folder / "checkpoint.safetensors", training.trainer, position)
        draft.counts |= {"tokens": len(training.table), "touched": int(training.trainer.touched.sum())}
        draft.counts |= {"epochs": position.epoch, "steps": training.trainer.steps}
        draft.details |= {"history": training.history, "best_epoch": position.best}
        draft.details |= settings.objective.details(folder, training.trainer.buffers)
        draft.details["step"] = training.trainer.step_description
    shutil.rmtree(partial_folder, ignore_errors=True)
    return draft.artifact
