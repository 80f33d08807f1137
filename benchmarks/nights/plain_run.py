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
from typing import Any

from benchmarks.stages import ingest, preprocess, tokenize
from storage.home.workspace import Workspace
from storage.memory import configure_memory
from tasks.pool import Submit, helper_process, open_pool

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
    from prefect.logging import disable_run_logger
    from threadpoolctl import threadpool_limits

    from flows.settings import LAPTOP as settings
    from storage.tracking import Tracking
    from tasks.augment.task import augment
    from tasks.cluster.task import ClusteringInputs, cluster
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate, score_baselines
    from tasks.neighbours.task import find_nearest
    from tasks.predictor.task import fit_linear
    from tasks.publish.inputs import Challenger, LayoutInputs, PageInputs, ReportInputs
    from tasks.publish.registry.task import promote, register
    from tasks.publish.task import compute_layout, draw, pack, report
    from tasks.train.task import train

    gc.freeze()  # as the nightly run does
    seconds: dict[str, float] = {}
    cpu_clock = (lambda: sum(os.times()[:4])) if one_by_one else time.thread_time

    def timed(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        started, cpu = time.perf_counter(), cpu_clock()
        result = function(*arguments)
        seconds[name] = round(time.perf_counter() - started, 2)
        seconds[f"{name}, CPU"] = round(cpu_clock() - cpu, 2)
        return result

    place, publishing = str(Workspace(home).home), settings.publish
    limits = threadpool_limits(1, user_api="blas")
    with disable_run_logger(), limits, _executor(one_by_one) as submit:
        guide = timed("ingest", ingest, home, feeds)
        vocabulary = timed("tokenize", tokenize, home, guide, settings.tokenize)
        salt = settings.tokenize.splits.salt
        corpus = timed("preprocess", preprocess, home, guide, vocabulary, salt, settings.preprocess)
        run = timed("MLflow start", lambda: Tracking(place).start_run("bare", "bare"))
        context = contextvars.copy_context  # disable_run_logger is a context variable
        baselines = submit(
            context().run, timed, "baselines", score_baselines.fn, place, corpus, settings.evaluate
        )
        linear = submit(context().run, timed, "linear", fit_linear.fn, place, corpus)
        checkpoint = timed("train", train.fn, place, corpus, settings.train, run)
        inputs = vocabulary, corpus, checkpoint, settings.train.encoder, settings.augment
        encoder = timed("augment", augment.fn, place, *inputs)
        vectors = timed("embed", embed.fn, place, corpus, encoder)
        inputs = corpus, encoder, vectors, linear.result()
        packed_model = submit(context().run, timed, "pack", pack.fn, place, *inputs)
        inputs = corpus, vectors, settings.cluster.strategy.neighbours, settings.cluster.search
        nearest = timed("neighbours", find_nearest.fn, place, *inputs)
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
            return timed("layout", compute_layout.fn, place, layout_inputs, None)

        layout = submit(context().run, layout_after_baselines)
        clustering_inputs = ClusteringInputs(
            corpus=corpus, vectors=vectors, nearest=nearest, settings=settings.cluster
        )
        clustering = timed("cluster", cluster.fn, place, clustering_inputs)
        model = packed_model.result()
        inputs = corpus, vectors, clustering, baselines.result(), model, settings.evaluate
        scores = timed("evaluate", evaluate.fn, place, *inputs)
        page_inputs = PageInputs(
            guide=guide,
            corpus=corpus,
            checkpoint=checkpoint,
            vectors=vectors,
            nearest=nearest,
            layout=layout.result(),
            clustering=clustering,
            scores=scores,
            settings=publishing,
        )
        page = submit(context().run, timed, "draw", draw.fn, place, page_inputs, None, datetime.now(UTC))
        version = timed("register", register.fn, place, guide, corpus, model, publishing, run)
        challenger = Challenger(
            version=version, guide=guide, corpus=corpus, vectors=vectors, model=model, scores=scores
        )
        drawn = page.result()
        verdict = timed("promote", promote.fn, place, challenger, publishing, run)
        report_inputs = ReportInputs(
            guide=guide,
            corpus=corpus,
            checkpoint=checkpoint,
            clustering=clustering,
            scores=scores,
            page=drawn,
            model=model,
            verdict=verdict,
            anomalies=[],
        )
        timed("report", report.fn, place, report_inputs, run)
    print(json.dumps(seconds))


if __name__ == "__main__":
    home, *feeds = (Path(argument) for argument in sys.argv[1:] if argument != ONE_BY_ONE)
    main(home, feeds, one_by_one=ONE_BY_ONE in sys.argv)
