"""The comparison of optimizers as Prefect tasks: one for each optimizer and size, and one that concludes; and
searches, whose trainings are tasks for the flow's task runner.
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
from storage.stages import Stage
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.train.population.esgd import ESGD
from tasks.train.population.plot import plot_rounds
from tasks.train.settings import TrainSettings
from tasks.train.tuning import range_test
from tasks.train.tuning.entries import Entry, entries
from tasks.train.tuning.plot import plot_range_tests, plot_ranking
from tasks.train.tuning.ranking import rank, table_markdown, verdict
from tasks.train.tuning.runs import TuningRun, run_training
from tasks.train.tuning.searches import Outcome, rounds_csv, searches_markdown
from tasks.train.tuning.settings import Search, TuningSettings
from tasks.train.tuning.space import read_rounds

STAGE = Stage(Checkpoint, __file__, "search")


@task(task_run_name="{entry.name}-{size}", cache_policy=NO_CACHE)
def compete(
    home: str, corpus: Corpus, entry: Entry, size: int, tuning: TuningSettings, run: str
) -> list[TuningRun]:
    """Trains one optimizer at one size with every rate; the best is logged as an MLflow run below ``run``."""
    logger, workspace, runs = get_run_logger(), Workspace(home), []
    entry = entry.scored(size, tuning.share)
    for factor in tuning.rates:
        runs.append(found := run_training(workspace.folder(corpus), entry, factor))
        ends = [
            f"loss {end.loss:.4f}, score {end.score:.4f}, {end.seconds:.2f} s" for end in found.marks[-1:]
        ]
        said = "; ".join([*ends, found.trouble])
        logger.info("%s at %d, rate %.3g: %s", found.name, size, found.rate, said)
    best, tracking = max(runs, key=lambda found: found.score), Tracking(workspace.home)
    tags = {"mlflow.parentRunId": run, "guidespace.optimizer": entry.name}
    parameters = {"size": size, "rate": best.rate, **asdict(entry.at(best.factor))}
    child = tracking.start_run(f"{run}/{entry.name}/{size}", f"{entry.name} {size}", tags, parameters)
    scores = {f"score_at_rate_{found.rate:.3g}": found.score for found in runs}
    steps = [(at.step, {"loss": at.loss, "score": at.score, "seconds": at.seconds}) for at in best.marks]
    last = best.marks[-1].step if best.marks else 0
    tracking.log_steps(child, [*steps, (last, {"best_score": best.score, **scores})])
    tracking.end_run(child, "FINISHED" if best.score else "FAILED")
    return runs


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def conclude(home: str, runs: Sequence[Sequence[TuningRun]], preset: str, run: str) -> str:
    """Logs table, plot and verdict on the presets' optimizer to MLflow and Prefect; returns the Markdown."""
    table = rank(every := [found for own in runs for found in own])
    text, tracking = table_markdown(table, verdict(table, preset)), Tracking(Workspace(home).home)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tuning.md").write_text(text, encoding="utf-8")
        (folder / "runs.json").write_text(
            json.dumps([asdict(found) for found in every], indent=0), encoding="utf-8"
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
def work(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """A piece of a search, where the flow's task runner has room."""
    return function(*given)


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
    """Runs a search, resuming one that was killed; its table, its plot and its scores are an MLflow run below
    ``run``, the best member of a population is published as a Checkpoint.
    """
    logger, workspace, tracking = get_run_logger(), Workspace(home), Tracking(Workspace(home).home)
    space = tuning.space(workspace.folder(corpus), settings, size)
    inputs = corpus, list(space.entries), list(space.rates), space.trainings, method
    folder = workspace.place(Checkpoint, STAGE.key(*inputs)).with_suffix(".partial")
    tags = {"mlflow.parentRunId": run, "guidespace.search": method.name}
    about = {"size": size, **asdict(method)}
    child = tracking.start_run(f"{run}/{method.name}/{size}", f"{method.name} {size}", tags, about)
    for progress in method.search(space, folder, lambda function, *given: work.submit(function, given)):
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
    return Outcome.of(method.name, size, rounds)


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def conclude_searches(home: str, outcomes: Sequence[Outcome], tuning: TuningSettings, run: str) -> str:
    """Logs the table of searches to MLflow and Prefect; returns it as Markdown."""
    workers = f"{tuning.pool}, {tuning.space(Path(), TrainSettings(), 2).at_once} at a time"
    text, tracking = searches_markdown(outcomes, workers), Tracking(Workspace(home).home)
    tracking.log_text(run, text, "searches.md")
    scores = {f"score/{each.size}/{each.search}": each.score for each in outcomes}
    seconds = {f"seconds/{each.size}/{each.search}": each.seconds for each in outcomes}
    tracking.log_progress(run, 0, scores | seconds)
    if TaskRunContext.get():
        create_markdown_artifact(text, key="searches", description="Searches side by side at equal budgets")
    return text


@task(task_run_name="range-tests", cache_policy=NO_CACHE)
def test_ranges(home: str, corpus: Corpus, settings: TrainSettings, tuning: TuningSettings, run: str) -> str:
    """Range tests of all entries at all sizes: the plot goes to MLflow, the table is returned as Markdown."""
    folder, tracking = Workspace(home).folder(corpus), Tracking(Workspace(home).home)
    own = entries(settings, tuning.optimizers)
    scored = [entry.scored(size, tuning.share) for size in tuning.sizes for entry in own]
    tests = [range_test.range_test(folder, entry) for entry in scored]
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "range_tests.html"
        plot_range_tests(tests).write_html(file, include_plotlyjs=True, div_id="range_tests")
        tracking.log_file(run, file)
    tracking.log_text(run, text := range_test.table_markdown(tests), "range_tests.md")
    return text
