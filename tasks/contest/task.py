"""The comparison of rules as Prefect tasks: one a rule and size, and one that concludes."""

from __future__ import annotations

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
from tasks.contest.courses import Course, Entry, run_courses
from tasks.contest.plot import write_plot
from tasks.contest.settings import ContestSettings
from tasks.contest.standing import standings, table_markdown, verdict


@task(task_run_name="{entry.name}-{size}", cache_policy=NO_CACHE)
def compete(home: str, corpus: Corpus, entry: Entry, size: int, contest: ContestSettings, run: str) -> list[Course]:
    """Trains one rule at one size with every rate; an MLflow run below the contest's shows its best course.

    Args:
        home: Where everything is.
        corpus: What is learnt.
        entry: The rule.
        size: Dimensions.
        contest: Rates, and what is set aside.
        run: MLflow run of the contest.
    """
    logger = get_run_logger()
    workspace = Workspace(home)
    courses = []
    for course in run_courses(workspace.folder(corpus), entry, size, contest):
        courses.append(course)
        last = f"loss {course.marks[-1].loss:.4f}, score {course.score:.4f}, {course.marks[-1].seconds:.2f} s" if course.marks else "no epoch"
        logger.info("%s at %d, rate %.3g: %s", course.name, size, course.rate, f"{last}; {course.trouble}" if course.trouble else last)
    best = max(courses, key=lambda course: course.score)
    tracking = Tracking(workspace.home)
    tags = {"mlflow.parentRunId": run, "guidespace.rule": entry.name}
    child = tracking.start_run(f"{run}/{entry.name}/{size}", f"{entry.name} {size}", tags, {"size": size, "rate": best.rate, **asdict(entry.at(best.factor))})
    with tracking.buffer(child) as buffer:
        for mark in best.marks:
            buffer.log(mark.step, {"loss": mark.loss, "score": mark.score, "seconds": mark.seconds})
        buffer.log(best.marks[-1].step if best.marks else 0, {"best_score": best.score, **{f"score_at_rate_{course.rate:.3g}": course.score for course in courses}})
    tracking.end_run(child, "FINISHED" if best.score else "FAILED")
    return courses


@task(task_run_name="conclude", cache_policy=NO_CACHE)
def conclude(home: str, courses: Sequence[Sequence[Course]], preset: str, run: str) -> str:
    """One table, one plot and one sentence, in MLflow and as a Prefect artifact.

    Args:
        home: Where everything is.
        courses: Of all tasks before.
        preset: Name of the rule that the presets use.
        run: MLflow run of the contest.

    Returns:
        The table, with the sentence above it, as markdown.
    """
    every = [course for own in courses for course in own]
    table = standings(every)
    text = table_markdown(table, verdict(table, preset))
    tracking = Tracking(Workspace(home).home)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "contest.md").write_text(text, encoding="utf-8")
        (place / "courses.json").write_text(json.dumps([asdict(course) for course in every], indent=0), encoding="utf-8")
        write_plot(table, place / "contest.html")
        tracking.log_folder(run, place)
    tracking.log_progress(run, 0, {f"score/{standing.course.size}/{standing.course.name}": standing.course.score for standing in table})
    if TaskRunContext.get():
        create_markdown_artifact(text, key="contest", description="Rules side by side: the best rate of each, at each size")
    return text
