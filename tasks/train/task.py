"""Stage train: Corpus to Checkpoint."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext

from storage.artifacts import Checkpoint, Corpus
from storage.stages import Stage
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

STAGE = Stage(Checkpoint, __file__)


@task(**STAGE.options)
def train(home: str, corpus: Corpus, settings: TrainSettings, run: str | None = None) -> Checkpoint:
    """Learns a row for every token; goes on from the last epoch that a killed run finished.

    Args:
        home: Where everything is.
        corpus: What to learn from.
        settings: Objective, encoder, rule, and how long.
        run: MLflow run that is told of every epoch; it changes nothing in what is learnt.

    Raises:
        Diverged: The loss is no number any more; the last good epoch stays on disk.
    """
    logger = get_run_logger()
    workspace = Workspace(home)
    training = Training(workspace.folder(corpus), settings)
    partial = workspace.place(Checkpoint, STAGE.key(corpus, settings)).with_suffix(".partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    if partial.exists():
        training.load(partial)
        logger.info("going on after epoch %d of %d", training.epoch, settings.epochs)
    bar = create_progress_artifact(progress=0.0, key="training", description="Epochs of training done") if TaskRunContext.get() else None
    for progress in training.run():
        training.save(partial)
        if bar:
            update_progress_artifact(bar, progress=progress.percent)  # pyright: ignore[reportArgumentType]
        if run:
            Tracking(home).log_progress(run, progress.step, {f"train/{name}": value for name, value in progress.metrics.items()})
        logger.info("epoch %d of %d: loss %.4f, %d titles/s", progress.step, progress.total, progress.metrics["loss"], progress.metrics["titles_per_second"])
    with STAGE.publish(home, corpus, settings) as draft:
        training.save(draft.folder / "checkpoint.safetensors")
        draft.counts |= {"tokens": len(training.table), "touched": int(training.touched.sum()), "epochs": training.epoch, "steps": training.step}
        draft.details |= {"history": training.history}
    partial.unlink(missing_ok=True)
    return draft.artifact
