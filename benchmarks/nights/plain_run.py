"""Runs the stages of a nightly run as plain functions, without Prefect, and prints the wall seconds of each
and the CPU seconds of its thread.

``python -m benchmarks.nights.plain_run HOME FEED …`` runs them in parallel like the flow, with which
orchestration.py compares it. With the option ``--one-by-one``, it runs one stage after the other in this
process, so that the CPU seconds of a stage include all its threads and child processes (nightly.py).
"""

import contextvars
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.stages import ingest, preprocess, tokenize
from storage.home.workspace import Workspace
from storage.memory import configure_memory
from tasks.pool import Submit, helper_process, open_pool

if TYPE_CHECKING:
    from tasks.settings import Settings

ONE_BY_ONE = "--one-by-one"


@contextmanager
def _executor(one_by_one: bool) -> Iterator[Submit]:
    """Yields ``submit``, which runs a function at once, or in a thread beside a helper process."""
    if one_by_one:
        with open_pool("processes", 0) as submit:
            yield submit
    else:
        with helper_process(), ThreadPoolExecutor(3) as pool:
            yield pool.submit


def main(home: Path, feeds: Sequence[Path], *, one_by_one: bool) -> None:
    """Runs all stages; prints a JSON object with the seconds of each part."""
    configure_memory()
    from flows.settings import LAPTOP

    gc.freeze()  # as the nightly run does
    seconds: dict[str, float] = {}
    cpu_clock = (lambda: sum(os.times()[:4])) if one_by_one else time.thread_time

    def timed(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        started, cpu = time.perf_counter(), cpu_clock()
        result = function(*arguments)
        seconds[name] = round(time.perf_counter() - started, 2)
        seconds[f"{name}, CPU"] = round(cpu_clock() - cpu, 2)
        return result

    run_stages(home, feeds, LAPTOP, timed, one_by_one=one_by_one)
    print(json.dumps(seconds))


def run_stages(
    home: Path,
    feeds: Sequence[Path],
    settings: "Settings",
    measured: Callable[..., Any],
    *,
    one_by_one: bool,
) -> None:
    """Runs all stages of a night.

    Args:
        home: Folder of the home.
        feeds: XMLTV files.
        settings: Settings of all stages.
        measured: Is called with the name of a stage, its function and arguments, and returns its result.
        one_by_one: Whether the stages run one after the other, in this process and thread.
    """
    from prefect.logging import disable_run_logger
    from threadpoolctl import threadpool_limits

    from storage.tracking import Tracking
    from tasks.augment.task import augment
    from tasks.cluster.task import ClusteringInputs, cluster
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate, score_baselines
    from tasks.ingest.task import check
    from tasks.neighbours.task import find_nearest
    from tasks.predictor.task import fit_linear
    from tasks.publish.inputs import Challenger, LayoutInputs, PageInputs, ReportInputs
    from tasks.publish.registry.task import promote, register
    from tasks.publish.task import compute_layout, draw, pack, report
    from tasks.train.task import train

    place, publishing = str(Workspace(home).home), settings.publish
    limits = threadpool_limits(1, user_api="blas")
    with disable_run_logger(), limits, _executor(one_by_one) as submit:
        context = contextvars.copy_context  # disable_run_logger is a context variable
        guide = measured("ingest", ingest, home, feeds)
        anomalies = submit(context().run, measured, "check", check.fn, place, guide)
        vocabulary = measured("tokenize", tokenize, home, guide, settings.tokenize)
        salt = settings.tokenize.splits.salt
        corpus = measured("preprocess", preprocess, home, guide, vocabulary, salt, settings.preprocess)
        run = measured("MLflow start", lambda: Tracking(place).start_run("bare", "bare"))
        baselines = submit(
            context().run, measured, "baselines", score_baselines.fn, place, corpus, settings.evaluate
        )
        linear = submit(context().run, measured, "linear", fit_linear.fn, place, corpus)
        checkpoint = measured("train", train.fn, place, corpus, settings.train, run)
        inputs = vocabulary, corpus, checkpoint, settings.train.encoder, settings.augment
        encoder = measured("augment", augment.fn, place, *inputs)
        vectors = measured("embed", embed.fn, place, corpus, encoder)
        inputs = corpus, encoder, vectors, linear.result()
        packed_model = submit(context().run, measured, "pack", pack.fn, place, *inputs)
        inputs = corpus, vectors, settings.cluster.strategy.neighbours, settings.cluster.search
        nearest = measured("neighbours", find_nearest.fn, place, *inputs)
        layout_inputs = LayoutInputs(
            corpus=corpus,
            encoder=encoder,
            vectors=vectors,
            nearest=nearest,
            neighbours=publishing.neighbours,
            seed=publishing.seed,
        )

        def layout_after_baselines() -> Any:
            baselines.result()
            return measured("layout", compute_layout.fn, place, layout_inputs, None)

        layout = submit(context().run, layout_after_baselines)
        clustering_inputs = ClusteringInputs(
            corpus=corpus, vectors=vectors, nearest=nearest, settings=settings.cluster
        )
        clustering = measured("cluster", cluster.fn, place, clustering_inputs)
        model = packed_model.result()
        inputs = corpus, vectors, clustering, baselines.result(), model, settings.evaluate
        scores = measured("evaluate", evaluate.fn, place, *inputs)
        page_inputs = PageInputs(
            guide=guide,
            corpus=corpus,
            checkpoint=checkpoint,
            nearest=nearest,
            layout=layout.result(),
            clustering=clustering,
            scores=scores,
            settings=publishing,
        )
        page = submit(context().run, measured, "draw", draw.fn, place, page_inputs, None, datetime.now(UTC))
        version = measured("register", register.fn, place, guide, corpus, model, publishing, run)
        challenger = Challenger(
            version=version, guide=guide, corpus=corpus, vectors=vectors, model=model, scores=scores
        )
        drawn = page.result()
        verdict = measured("promote", promote.fn, place, challenger, publishing, run)
        report_inputs = ReportInputs(
            guide=guide,
            corpus=corpus,
            checkpoint=checkpoint,
            clustering=clustering,
            scores=scores,
            page=drawn,
            model=model,
            verdict=verdict,
            anomalies=anomalies.result(),
        )
        measured("report", report.fn, place, report_inputs, run)


if __name__ == "__main__":
    home, *feeds = (Path(argument) for argument in sys.argv[1:] if argument != ONE_BY_ONE)
    main(home, feeds, one_by_one=ONE_BY_ONE in sys.argv)
