"""Prefect tasks that compare optimizers, and that search for a good optimizer and learning rate.

A comparison has a task for each optimizer and vector size, and a task that logs the ranking. The trainings of
a search are tasks, too, which the task runner of the flow executes.
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
from tasks.pool_settings import count_workers
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import Candidate
from tasks.train.tuning.esgd import ESGD
from tasks.train.tuning.plot import plot_ranking, plot_rounds
from tasks.train.tuning.ranking import compare_with_preset, rank, rankings_markdown
from tasks.train.tuning.runs import TuningRun, run_training
from tasks.train.tuning.searches import Outcome, rounds_csv, searches_markdown
from tasks.train.tuning.settings import Search, TuningSettings
from tasks.train.tuning.space import read_rounds

STAGE = Stage(Checkpoint, __file__, "search")


@task(task_run_name="{candidate.name}-{size}", cache_policy=NO_CACHE)
def train_candidates(
    home: str, corpus: Corpus, candidate: Candidate, size: int, tuning: TuningSettings, run: str
) -> list[TuningRun]:
    """Trains a candidate with each learning rate; logs the best training as a child of MLflow run ``run``."""
    logger, workspace, runs = get_run_logger(), Workspace(home), []
    candidate = candidate.for_scoring(size, tuning.share)
    for factor in tuning.rates:
        runs.append(tuning_run := run_training(workspace.folder(corpus), candidate, factor))
        summary = tuning_run.trouble
        if tuning_run.marks:
            last_epoch = tuning_run.marks[-1]
            metrics = f"loss {last_epoch.loss:.4f}, score {last_epoch.score:.4f}, {last_epoch.seconds:.2f} s"
            summary = f"{metrics}; {summary}" if summary else metrics
        logger.info("%s at %d, rate %.3g: %s", tuning_run.name, size, tuning_run.rate, summary)
    best_run, tracking = max(runs, key=lambda tuning_run: tuning_run.score), Tracking(workspace.home)
    tags = {"mlflow.parentRunId": run, "guidespace.optimizer": candidate.name}
    parameters = {"size": size, "rate": best_run.rate, **asdict(candidate.scale_rate(best_run.factor))}
    key, title = f"{run}/{candidate.name}/{size}", f"{candidate.name} {size}"
    child_run = tracking.start_run(key, title, tags, parameters)
    scores = {f"score_at_rate_{tuning_run.rate:.3g}": tuning_run.score for tuning_run in runs}
    steps = [
        (epoch.step, {"loss": epoch.loss, "score": epoch.score, "seconds": epoch.seconds})
        for epoch in best_run.marks
    ]
    last_step = best_run.marks[-1].step if best_run.marks else 0
    tracking.log_steps(child_run, [*steps, (last_step, {"best_score": best_run.score, **scores})])
    tracking.end_run(child_run, "FINISHED" if best_run.score else "FAILED")
    return runs


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def log_ranking(home: str, runs: Sequence[Sequence[TuningRun]], preset: str, run: str) -> str:
    """Logs the ranking, its plot and the comparison with the presets to MLflow; returns them as Markdown."""
    all_runs = [tuning_run for runs_of_optimizer in runs for tuning_run in runs_of_optimizer]
    rankings, tracking = rank(all_runs), Tracking(Workspace(home).home)
    markdown = rankings_markdown(rankings, compare_with_preset(rankings, preset))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tuning.md").write_text(markdown, encoding="utf-8")
        runs_json = json.dumps([asdict(tuning_run) for tuning_run in all_runs], indent=0)
        (folder / "runs.json").write_text(runs_json, encoding="utf-8")
        plot_ranking(rankings).write_html(folder / "tuning.html", include_plotlyjs=True, div_id="tuning")
        tracking.log_folder(run, folder)
    scores = {f"score/{ranking.run.size}/{ranking.run.name}": ranking.run.score for ranking in rankings}
    tracking.log_progress(run, 0, scores)
    if TaskRunContext.get():
        description = "Comparison of optimizers, each with its best learning rate, for each vector size"
        create_markdown_artifact(markdown, key="tuning", description=description)
    return markdown


@task(task_run_name="member", cache_policy=NO_CACHE)
def run_piece(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Calls ``function(*arguments)``, which computes a piece of a round of a search."""
    return function(*arguments)


@task(task_run_name="{strategy.name}-{size}", cache_policy=NO_CACHE)
def search(
    home: str,
    corpus: Corpus,
    settings: TrainSettings,
    tuning: TuningSettings,
    strategy: Search,
    size: int,
    run: str,
) -> Outcome:
    """Runs or resumes a search, and logs its table, plot and scores as a child of the MLflow run ``run``.

    If the search is ESGD, the best member of the population is published as a Checkpoint.
    """
    logger, workspace, tracking = get_run_logger(), Workspace(home), Tracking(Workspace(home).home)
    space = tuning.space(workspace.folder(corpus), settings, size)
    inputs = corpus, list(space.candidates), list(space.rates), space.trainings, strategy
    folder = workspace.artifact_folder(Checkpoint, STAGE.key(*inputs)).with_suffix(".partial")
    tags = {"mlflow.parentRunId": run, "guidespace.search": strategy.name}
    parameters = {"size": size, **asdict(strategy)}
    key, title = f"{run}/{strategy.name}/{size}", f"{strategy.name} {size}"
    child_run = tracking.start_run(key, title, tags, parameters)
    for progress in strategy.search(
        space, folder, lambda function, *arguments: run_piece.submit(function, arguments)
    ):
        tracking.log_progress(child_run, progress.step, progress.metrics)
        logger.info("round %d of %d: %s", progress.step, progress.total, progress.note)
    rounds = read_rounds(folder)
    figure = plot_rounds(rounds, f"{strategy.name} at {size} dimensions")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "rounds.csv").write_text(rounds_csv(rounds), encoding="utf-8")
        figure.write_html(Path(name) / "rounds.html", include_plotlyjs=True, div_id="rounds")
        tracking.log_folder(child_run, Path(name))
    if isinstance(strategy, ESGD):
        with STAGE.publish(home, *inputs) as draft:
            strategy.write_best(space, folder, draft.folder / "checkpoint.safetensors")
        logger.info("published the state of the best member in %s", draft.folder)
    shutil.rmtree(folder)
    tracking.end_run(child_run)
    return Outcome.from_rounds(strategy.name, size, rounds)


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def log_searches(home: str, outcomes: Sequence[Outcome], tuning: TuningSettings, run: str) -> str:
    """Logs the results of all searches to MLflow and Prefect; returns them as a Markdown table."""
    workers = f"{tuning.pool}, {count_workers(tuning.workers)} at a time"
    markdown, tracking = searches_markdown(outcomes, workers), Tracking(Workspace(home).home)
    tracking.log_text(run, markdown, "searches.md")
    scores = {f"score/{outcome.size}/{outcome.search}": outcome.score for outcome in outcomes}
    seconds = {f"seconds/{outcome.size}/{outcome.search}": outcome.seconds for outcome in outcomes}
    tracking.log_progress(run, 0, scores | seconds)
    if TaskRunContext.get():
        create_markdown_artifact(
            markdown, key="searches", description="Comparison of searches with equal budgets"
        )
    return markdown
