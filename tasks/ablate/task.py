"""Prefect task that computes the effects of blocks from the predictions of all trials, and logs them."""

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
from tasks.ablate.plot import plot_effects
from tasks.ablate.report import describe_effect, write_report
from tasks.scoring.folds import ScoresByCell, TitleScores

Trials = Sequence[Sequence[artifacts.TrialPredictions]]  # predictions by fold and seed


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def conclude(
    home: str,
    blocks: Sequence[AblationBlock],
    trials: Mapping[str, Trials],
    bases: Mapping[str, str],
    left_out: Sequence[str],
    resamples: int,
    run: str,
) -> str:
    """Computes the effects of all blocks; logs a report, a plot and a child run per block to MLflow.

    Args:
        home: Folder of the home.
        blocks: Blocks to measure.
        trials: Predictions of the trials by name of the block or preset.
        bases: Name of the preset's trials with which each block is compared, by name of the block.
        left_out: Names of blocks that do not change the preset.
        resamples: Number of bootstrap resamples.
        run: Id of the parent MLflow run.

    Returns:
        The report as Markdown.
    """
    workspace, tracking = Workspace(home), Tracking(Workspace(home).home)
    predictions = {name: _read_predictions(workspace, folds) for name, folds in trials.items()}
    effects = sort_effects(
        [
            measure_effect(block, predictions[bases[block.name]], predictions[block.name], resamples)
            for block in blocks
        ]
    )
    for effect in effects:
        _log_block(tracking, run, effect, predictions[effect.block.name])
    text = write_report(effects, left_out)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ablation.md").write_text(text, encoding="utf-8")
        (folder / "effects.json").write_text(
            json.dumps([_effect_to_json(effect) for effect in effects], indent=0), encoding="utf-8"
        )
        plot_effects(effects).write_html(folder / "ablation.html", include_plotlyjs=True, div_id="ablation")
        tracking.log_folder(run, folder)
    tracking.log_progress(run, 0, {f"worth/{effect.block.name}": effect.overall.value for effect in effects})
    if TaskRunContext.get():
        create_markdown_artifact(text, key="ablation", description="Effect of each building block")
    return text


def _read_predictions(workspace: Workspace, trials: Trials) -> Folds:
    """Reads the predictions of all trials of a block."""

    def read_trial(artifact: artifacts.TrialPredictions) -> ScoresByCell:
        return {
            key: TitleScores(*columns) for key, columns in read_answers(workspace.folder(artifact)).items()
        }

    return [[read_trial(artifact) for artifact in seeds] for seeds in trials]


def _log_block(tracking: Tracking, run: str, effect: Effect, folds: Folds) -> None:
    """Logs a child MLflow run with the effect of a block, and the mean quality of each trial as a step."""
    name = effect.block.name
    tags = {
        "mlflow.parentRunId": run,
        "guidespace.block": name,
        "mlflow.note.content": describe_effect(effect),
    }
    child = tracking.start_run(f"{run}/{name}", name, tags, {"changes": list(effect.block.changes)})
    figures = {"quality": effect.without, "quality_of_preset": effect.with_it}
    for (form, protocol), figure in effect.figures.items():
        if figure.n:
            key = f"worth/{protocol}/{form}"
            figures |= {key: figure.value, f"{key}_margin": figure.margin}
    means = []
    for answers in (answers for seeds in folds for answers in seeds):
        titles = sum(len(part.family) for part in answers.values())
        means.append(sum(part.quality.sum() for part in answers.values()) / titles)
    steps = [(step, {"quality_of_trial": float(mean)}) for step, mean in enumerate(means)]
    tracking.log_steps(child, [(0, figures), *steps])
    tracking.end_run(child)


def _effect_to_json(effect: Effect) -> dict[str, object]:
    """Converts the effect of a block of changed settings to an entry of effects.json."""
    figures = {f"{form}/{protocol}": figure._asdict() for (form, protocol), figure in effect.figures.items()}
    description = {
        "block": effect.block.name,
        "changes": effect.block.changes,
        "sentence": describe_effect(effect),
    }
    return {**description, "quality": effect.without, "quality_of_preset": effect.with_it, "worth": figures}
