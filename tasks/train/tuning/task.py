"""The Prefect tasks that compare optimizers and search optimizers and learning rates.

A comparison has a task per optimizer and size, and one that logs the ranking. The trainings of a search are
tasks in the flow's task runner.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext

from storage.artifacts import Checkpoint, Corpus
from storage.home.workspace import Workspace
from storage.stages import Stage
from storage.tracking import Tracking
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import Entry
from tasks.train.tuning.esgd import ESGD
from tasks.train.tuning.generations_plot import plot_rounds
from tasks.train.tuning.plot import plot_ranking
from tasks.train.tuning.ranking import compare_with_preset, rank, table_markdown
from tasks.train.tuning.runs import TuningRun, run_training
from tasks.train.tuning.searches import Outcome, rounds_csv, searches_markdown
from tasks.train.tuning.settings import Search, TuningSettings
from tasks.train.tuning.space import read_rounds

STAGE = Stage(Checkpoint, __file__, "search")


@task(task_run_name="{entry.name}-{size}", cache_policy=NO_CACHE)
def train_candidates(
    home: str, corpus: Corpus, entry: Entry, size: int, tuning: TuningSettings, run: str
) -> list[TuningRun]:
    """Trains an optimizer with each learning rate; logs the best one as a child of the MLflow run ``run``."""
    logger, workspace, runs = get_run_logger(), Workspace(home), []
    entry = entry.for_scoring(size, tuning.share)
    for factor in tuning.rates:
        runs.append(tuning_run := run_training(workspace.folder(corpus), entry, factor))
        results = [
            f"loss {last_mark.loss:.4f}, score {last_mark.score:.4f}, {last_mark.seconds:.2f} s"
            for last_mark in tuning_run.marks[-1:]
        ]
        summary = "; ".join([*results, tuning_run.trouble])
        logger.info("%s at %d, rate %.3g: %s", tuning_run.name, size, tuning_run.rate, summary)
    best, tracking = max(runs, key=lambda tuning_run: tuning_run.score), Tracking(workspace.home)
    tags = {"mlflow.parentRunId": run, "guidespace.optimizer": entry.name}
    parameters = {"size": size, "rate": best.rate, **asdict(entry.scale_rate(best.factor))}
    child = tracking.start_run(f"{run}/{entry.name}/{size}", f"{entry.name} {size}", tags, parameters)
    scores = {f"score_at_rate_{tuning_run.rate:.3g}": tuning_run.score for tuning_run in runs}
    steps = [
        (mark.step, {"loss": mark.loss, "score": mark.score, "seconds": mark.seconds}) for mark in best.marks
    ]
    last_step = best.marks[-1].step if best.marks else 0
    tracking.log_steps(child, [*steps, (last_step, {"best_score": best.score, **scores})])
    tracking.end_run(child, "FINISHED" if best.score else "FAILED")
    return runs


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def log_ranking(home: str, runs: Sequence[Sequence[TuningRun]], preset: str, run: str) -> str:
    """Logs the ranking, its plot and the comparison with the presets to MLflow; returns the Markdown."""
    table = rank(all_runs := [tuning_run for group in runs for tuning_run in group])
    text, tracking = table_markdown(table, compare_with_preset(table, preset)), Tracking(Workspace(home).home)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tuning.md").write_text(text, encoding="utf-8")
        (folder / "runs.json").write_text(
            json.dumps([asdict(tuning_run) for tuning_run in all_runs], indent=0), encoding="utf-8"
        )
        plot_ranking(table).write_html(folder / "tuning.html", include_plotlyjs=True, div_id="tuning")
        tracking.log_folder(run, folder)
    scores = {f"score/{ranking.run.size}/{ranking.run.name}": ranking.run.score for ranking in table}
    tracking.log_progress(run, 0, scores)
    if TaskRunContext.get():
        description = "Optimizers side by side: the best rate of each, at each size"
        create_markdown_artifact(text, key="tuning", description=description)
    return text


@task(task_run_name="member", cache_policy=NO_CACHE)
def run_piece(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Calls ``function(*arguments)``, a part of a round of a search, in the task runner of the flow."""
    return function(*arguments)


@task(task_run_name="{method.name}-{size}", cache_policy=NO_CACHE)
def search(
    home: str,
    corpus: Corpus,
    settings: TrainSettings,
    tuning: TuningSettings,
    method: Search,
    size: int,
    run: str,
) -> Outcome:
    """Runs or resumes a search and logs its table, plot and scores as a child MLflow run of ``run``.

    The best member of a population is published as a Checkpoint.
    """
    logger, workspace, tracking = get_run_logger(), Workspace(home), Tracking(Workspace(home).home)
    space = tuning.space(workspace.folder(corpus), settings, size)
    inputs = corpus, list(space.entries), list(space.rates), space.trainings, method
    folder = workspace.artifact_folder(Checkpoint, STAGE.key(*inputs)).with_suffix(".partial")
    tags = {"mlflow.parentRunId": run, "guidespace.search": method.name}
    parameters = {"size": size, **asdict(method)}
    child = tracking.start_run(f"{run}/{method.name}/{size}", f"{method.name} {size}", tags, parameters)
    for progress in method.search(
        space, folder, lambda function, *arguments: run_piece.submit(function, arguments)
    ):
        tracking.log_progress(child, progress.step, progress.metrics)
        logger.info("round %d of %d: %s", progress.step, progress.total, progress.note)
    rounds = read_rounds(folder)
    figure = plot_rounds(rounds, f"{method.name} at {size} dimensions")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "rounds.csv").write_text(rounds_csv(rounds), encoding="utf-8")
        figure.write_html(Path(name) / "rounds.html", include_plotlyjs=True, div_id="rounds")
        tracking.log_folder(child, Path(name))
    if isinstance(method, ESGD):
        with STAGE.publish(home, *inputs) as draft:
            method.write_best(space, folder, draft.folder / "checkpoint.safetensors")
        logger.info("the state of the best member: %s", draft.folder)
    shutil.rmtree(folder)
    tracking.end_run(child)
    return Outcome.from_rounds(method.name, size, rounds)


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def log_searches(home: str, outcomes: Sequence[Outcome], tuning: TuningSettings, run: str) -> str:
    """Logs the table of searches to MLflow and Prefect and returns it as Markdown."""
    workers = f"{tuning.pool}, {tuning.space(Path(), TrainSettings(), 2).pieces} at a time"
    text, tracking = searches_markdown(outcomes, workers), Tracking(Workspace(home).home)
    tracking.log_text(run, text, "searches.md")
    scores = {f"score/{outcome.size}/{outcome.search}": outcome.score for outcome in outcomes}
    seconds = {f"seconds/{outcome.size}/{outcome.search}": outcome.seconds for outcome in outcomes}
    tracking.log_progress(run, 0, scores | seconds)
    if TaskRunContext.get():
        create_markdown_artifact(text, key="searches", description="Searches side by side at equal budgets")
    return text
