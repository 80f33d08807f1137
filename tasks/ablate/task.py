"""The end of an ablation: effects from the answers of all trials, to MLflow and Prefect."""

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
from tasks.ablate.blocks import Block
from tasks.ablate.effects import Effect, Folds, measure_effect, sort_effects
from tasks.ablate.plot import plot_effects
from tasks.ablate.report import sentence, write_report
from tasks.scoring.folds import Answer, Answers

Trials = Sequence[Sequence[artifacts.Answers]]  # of each fold those of each seed


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def conclude(
    home: str,
    blocks: Sequence[Block],
    trials: Mapping[str, Trials],
    bases: Mapping[str, str],
    left_out: Sequence[str],
    resamples: int,
    run: str,
) -> str:
    """Logs an MLflow run a block below ``run``, and there table, sentences and forest plot; returns the
    Markdown. ``trials`` are by name of the block, ``bases`` names what each is compared with.
    """
    workspace, tracking = Workspace(home), Tracking(Workspace(home).home)
    read = {name: _read(workspace, own) for name, own in trials.items()}
    effects = sort_effects(
        [measure_effect(block, read[bases[block.name]], read[block.name], resamples) for block in blocks]
    )
    for effect in effects:
        _log_block(tracking, run, effect, read[effect.block.name])
    text = write_report(effects, left_out)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ablation.md").write_text(text, encoding="utf-8")
        (folder / "effects.json").write_text(
            json.dumps([_as_json(own) for own in effects], indent=0), encoding="utf-8"
        )
        plot_effects(effects).write_html(folder / "ablation.html", include_plotlyjs=True, div_id="ablation")
        tracking.log_folder(run, folder)
    tracking.log_progress(run, 0, {f"worth/{own.block.name}": own.overall.value for own in effects})
    if TaskRunContext.get():
        create_markdown_artifact(text, key="ablation", description="What each building block is worth")
    return text


def _read(workspace: Workspace, trials: Trials) -> Folds:
    def one(artifact: artifacts.Answers) -> Answers:
        found = read_answers(workspace.folder(artifact))
        return {key: Answer(*columns) for key, columns in found.items()}

    return [[one(artifact) for artifact in seeds] for seeds in trials]


def _log_block(tracking: Tracking, run: str, effect: Effect, folds: Folds) -> None:
    """A child run: figures of the block, and the mean quality of each trial as a step."""
    name = effect.block.name
    tags = {"mlflow.parentRunId": run, "guidespace.block": name, "mlflow.note.content": sentence(effect)}
    child = tracking.start_run(f"{run}/{name}", name, tags, {"changes": list(effect.block.changes)})
    worth = {f"worth/{protocol}/{form}": own for (form, protocol), own in effect.figures.items() if own.n}
    figures = {key: own.value for key, own in worth.items()}
    figures |= {f"{key}_margin": own.margin for key, own in worth.items()}
    figures |= {"quality": effect.without, "quality_of_preset": effect.with_it}
    answers = [own for seeds in folds for own in seeds]
    means = [
        sum(part.quality.sum() for part in own.values()) / sum(len(part.family) for part in own.values())
        for own in answers
    ]
    steps = [(step, {"quality_of_trial": float(mean)}) for step, mean in enumerate(means)]
    tracking.log_steps(child, [(0, figures), *steps])
    tracking.end_run(child)


def _as_json(effect: Effect) -> dict[str, object]:
    figures = {f"{form}/{protocol}": own._asdict() for (form, protocol), own in effect.figures.items()}
    about = {"block": effect.block.name, "changes": effect.block.changes, "sentence": sentence(effect)}
    return {**about, "quality": effect.without, "quality_of_preset": effect.with_it, "worth": figures}
