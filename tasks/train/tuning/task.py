"""The comparison of optimizers as Prefect tasks: one for each optimizer and size, and one that concludes."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext

from storage.artifacts import Corpus
from storage.tracking import Tracking
from storage.workspace import Workspace
from tasks.train.tuning.plot import plot_ranking
from tasks.train.tuning.ranking import rank, table_markdown, verdict
from tasks.train.tuning.runs import Entry, TuningRun, TuningSettings, run_trainings


@task(task_run_name="{entry.name}-{size}", cache_policy=NO_CACHE)
def compete(
    home: str, corpus: Corpus, entry: Entry, size: int, tuning: TuningSettings, run: str
) -> list[TuningRun]:
    """Trains one optimizer at one size with every rate; the best is logged as an MLflow run below ``run``."""
    logger, workspace, runs = get_run_logger(), Workspace(home), []
    for found in run_trainings(workspace.folder(corpus), entry, size, tuning):
        runs.append(found)
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
        (folder / "runs.json").write_text(json.dumps([asdict(found) for found in every], indent=0))
        plot_ranking(table).write_html(folder / "tuning.html", include_plotlyjs=True, div_id="tuning")
        tracking.log_folder(run, folder)
    scores = {f"score/{ranking.run.size}/{ranking.run.name}": ranking.run.score for ranking in table}
    tracking.log_progress(run, 0, scores)
    if TaskRunContext.get():
        description = "Optimizers side by side: the best rate of each, at each size"
        create_markdown_artifact(text, key="tuning", description=description)
    return text
