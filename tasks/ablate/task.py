"""Defines the Prefect task that computes the effects of blocks from the predictions of all trials."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext

from storage import artifacts
from storage.formats.answers import read_answers
from storage.home.workspace import Workspace
from storage.tracking import Tracking
from tasks.ablate.blocks import AblationBlock
from tasks.ablate.effects import Effect, Folds, measure_effect, sort_effects
from tasks.ablate.plan import base_of
from tasks.ablate.plot import plot_effects
from tasks.ablate.report import describe_effect, write_report
from tasks.scoring.folds import ScoresByCell, TitleScores

Trials = Sequence[Sequence[artifacts.TrialPredictions]]  # predictions by fold and seed


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def conclude(
    home: str,
    blocks: Sequence[AblationBlock],
    trials: Mapping[str, Trials],
    ineffective_blocks: Sequence[str],
    resamples: int,
    run: str,
) -> str:
    """Computes the effects of blocks, and logs a report, a plot and a child run per block to MLflow.

    Args:
        home: Folder of the home.
        blocks: Blocks to measure.
        trials: Predictions of all trials, by block name; for the preset's trials, by a result of ``base_of``.
        ineffective_blocks: Names of the requested blocks that do not change the preset.
        resamples: Number of bootstrap resamples.
        run: Id of the parent run in MLflow.

    Returns:
        The report as Markdown.
    """
    workspace, tracking = Workspace(home), Tracking(Workspace(home).home)
    predictions = {name: _read_predictions(workspace, folds) for name, folds in trials.items()}
    effects = sort_effects(
        [
            measure_effect(block, predictions[base_of(block)], predictions[block.name], resamples)
            for block in blocks
        ]
    )
    for effect in effects:
        _log_block(tracking, run, effect, predictions[effect.block.name])
    report = write_report(effects, ineffective_blocks)
    with tempfile.TemporaryDirectory() as temporary_folder:
        folder = Path(temporary_folder)
        (folder / "ablation.md").write_text(report, encoding="utf-8")
        (folder / "effects.json").write_text(
            json.dumps([_effect_to_json(effect) for effect in effects], indent=0), encoding="utf-8"
        )
        plot_effects(effects).write_html(folder / "ablation.html", include_plotlyjs=True, div_id="ablation")
        tracking.log_folder(run, folder)
    tracking.log_progress(run, 0, {f"worth/{effect.block.name}": effect.overall.value for effect in effects})
    if TaskRunContext.get():
        create_markdown_artifact(report, key="ablation", description="Effect of each building block")
    return report


def _read_predictions(workspace: Workspace, trials: Trials) -> Folds:
    """Reads the predictions of all trials of a block, by fold and seed."""

    def read_trial(artifact: artifacts.TrialPredictions) -> ScoresByCell:
        columns_by_cell = read_answers(workspace.folder(artifact))
        return {cell: TitleScores(*columns) for cell, columns in columns_by_cell.items()}

    return [[read_trial(artifact) for artifact in seeds] for seeds in trials]


def _log_block(tracking: Tracking, run: str, effect: Effect, folds: Folds) -> None:
    """Logs the effect of a block to MLflow: a child run, with the mean quality of each trial as a step.

    ``folds`` are the predictions of the block's trials.
    """
    name = effect.block.name
    tags = {
        "mlflow.parentRunId": run,
        "guidespace.block": name,
        "mlflow.note.content": describe_effect(effect),
    }
    child = tracking.start_run(f"{run}/{name}", name, tags, {"changes": list(effect.block.changes)})
    figures = {"quality": effect.quality_without, "quality_of_preset": effect.quality_with}
    for (form, protocol), figure in effect.figures.items():
        if figure.n:
            key = f"worth/{protocol}/{form}"
            figures |= {key: figure.value, f"{key}_margin": figure.margin}
    trials = [list(scores_by_cell.values()) for seeds in folds for scores_by_cell in seeds]
    mean_qualities = [
        sum(scores.quality.sum() for scores in trial) / sum(len(scores.family) for scores in trial)
        for trial in trials
    ]
    steps = [(step, {"quality_of_trial": float(mean)}) for step, mean in enumerate(mean_qualities)]
    tracking.log_steps(child, [(0, figures), *steps])
    tracking.end_run(child)


def _effect_to_json(effect: Effect) -> dict[str, object]:
    """Converts the effect of a block to an entry of effects.json."""
    figures = {f"{form}/{protocol}": figure._asdict() for (form, protocol), figure in effect.figures.items()}
    return {
        "block": effect.block.name,
        "changes": effect.block.changes,
        "sentence": describe_effect(effect),
        "quality": effect.quality_without,
        "quality_of_preset": effect.quality_with,
        "worth": figures,
    }
