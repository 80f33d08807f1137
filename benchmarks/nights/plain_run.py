"""Runs the stages of a nightly run as plain functions, without Prefect, and prints the wall seconds of each
and the CPU seconds of its thread.

``python -m benchmarks.nights.plain_run HOME FEED …``; orchestration.py compares it with the flow.
"""

import contextvars
import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.stages import ingest, preprocess, tokenize
from storage.artifacts import Corpus, Guide, Vocabulary
from storage.home.workspace import Workspace
from storage.memory import configure_memory
from tasks.tokenize.settings import TokenizeSettings


def _to_corpus(
    home: Path, feeds: Sequence[Path], settings: TokenizeSettings
) -> tuple[Guide, Vocabulary, Corpus]:
    guide = ingest(home, feeds)
    vocabulary = tokenize(home, guide, settings)
    return guide, vocabulary, preprocess(home, guide, vocabulary, settings.splits.salt)


def main(home: Path, feeds: Sequence[Path]) -> None:
    """Runs all stages, in parallel like the flow; prints a JSON object with the seconds of each part."""
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
    from tasks.pool import helper_process
    from tasks.predictor.task import fit_linear
    from tasks.publish.inputs import Challenger, LayoutInputs, PageInputs, ReportInputs
    from tasks.publish.registry.task import promote, register
    from tasks.publish.task import compute_layout, draw, pack, report
    from tasks.train.task import train

    gc.freeze()  # as the nightly run does
    seconds: dict[str, float] = {}

    def timed(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        started, cpu = time.perf_counter(), time.thread_time()
        result = function(*arguments)
        seconds[name] = round(time.perf_counter() - started, 2)
        seconds[f"{name}, CPU"] = round(time.thread_time() - cpu, 2)
        return result

    place, publishing = str(Workspace(home).home), settings.publish
    limits = threadpool_limits(1, user_api="blas")
    with disable_run_logger(), limits, helper_process(), ThreadPoolExecutor(3) as pool:
        made = timed("ingest, tokenize, preprocess", _to_corpus, home, feeds, settings.tokenize)
        guide, vocabulary, corpus = made
        run = timed("MLflow start", lambda: Tracking(place).start_run("bare", "bare"))
        context = contextvars.copy_context  # disable_run_logger is a context variable
        baselines = pool.submit(
            context().run, timed, "baselines", score_baselines.fn, place, corpus, settings.evaluate
        )
        linear = pool.submit(context().run, timed, "linear", fit_linear.fn, place, corpus)
        checkpoint = timed("train", train.fn, place, corpus, settings.train, run)
        inputs = vocabulary, corpus, checkpoint, settings.train.encoder, settings.augment
        encoder = timed("augment", augment.fn, place, *inputs)
        vectors = timed("embed", embed.fn, place, corpus, encoder)
        inputs = corpus, encoder, vectors, linear.result()
        packed = pool.submit(context().run, timed, "pack", pack.fn, place, *inputs)
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

        layout = pool.submit(context().run, layout_after_baselines)
        clustering_inputs = ClusteringInputs(
            corpus=corpus, vectors=vectors, nearest=nearest, settings=settings.cluster
        )
        clustering = timed("cluster", cluster.fn, place, clustering_inputs)
        model = packed.result()
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
        page = pool.submit(context().run, timed, "draw", draw.fn, place, page_inputs, None, datetime.now(UTC))
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
    main(Path(sys.argv[1]), [Path(feed) for feed in sys.argv[2:]])
