"""The road without Prefect: every stage called as a plain function. What Prefect adds is the difference to
the flow.

``python -m benchmarks.road HOME FEED …`` prints the seconds of each stage and their sum, imports included.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from storage.artifacts import Corpus, Guide, Vocabulary
from storage.workspace import Workspace
from tasks.text.tokenizers import Tokenizer
from tasks.text.words import WordsAndNgrams
from tasks.tokenize.settings import TokenizeSettings


def make_corpus(
    home: Path, feeds: Sequence[Path], tokenizer: Tokenizer | None = None, *, context: bool = True
) -> Path:
    """Folder of the Corpus of some feeds, in a home of its own; with how titles air, or of the titles
    alone.
    """
    settings = TokenizeSettings(tokenizer=tokenizer or WordsAndNgrams())
    return Workspace(home).folder(
        _to_corpus(home, feeds, settings if context else replace(settings, context=()))[2]
    )


def _to_corpus(
    home: Path, feeds: Sequence[Path], tokenizing: TokenizeSettings
) -> tuple[Guide, Vocabulary, Corpus]:
    from prefect.logging import disable_run_logger

    from tasks.ingest.settings import IngestSettings
    from tasks.ingest.task import ingest
    from tasks.preprocess.settings import PreprocessSettings
    from tasks.preprocess.task import preprocess
    from tasks.tokenize.task import tokenize

    place = str(Workspace(home).home)
    with disable_run_logger():
        guide = ingest.fn(place, [str(feed) for feed in feeds], IngestSettings())
        vocabulary = tokenize.fn(place, guide, tokenizing)
        return (
            guide,
            vocabulary,
            preprocess.fn(place, guide, vocabulary, tokenizing.splits.salt, PreprocessSettings()),
        )


def main(home: Path, feeds: Sequence[Path]) -> None:
    """Runs the whole road and prints one JSON object: stage to seconds."""
    from flows.settings import LAPTOP as settings
    from storage.tracking import Tracking
    from tasks.augment.task import augment
    from tasks.cluster.task import cluster
    from tasks.embed.task import embed
    from tasks.evaluate.task import evaluate
    from tasks.publish.task import draw, pack, promote, report
    from tasks.train.task import train

    seconds: dict[str, float] = {}

    def timed(name, function, *arguments):  # type: ignore[no-untyped-def]
        started = time.perf_counter()
        result = function(*arguments)
        seconds[name] = round(time.perf_counter() - started, 2)
        return result

    from prefect.logging import disable_run_logger

    place = str(Workspace(home).home)
    with disable_run_logger():
        guide, vocabulary, corpus = timed(
            "ingest, tokenize, preprocess", _to_corpus, home, feeds, settings.tokenize
        )
        run = timed("MLflow start", lambda: Tracking(place).start_run("bare", "bare"))
        checkpoint = timed("train", train.fn, place, corpus, settings.train, run)
        encoder = timed(
            "augment",
            augment.fn,
            place,
            vocabulary,
            corpus,
            checkpoint,
            settings.train.encoder,
            settings.augment,
        )
        vectors = timed("embed", embed.fn, place, corpus, encoder)
        clustering = timed("cluster", cluster.fn, place, corpus, vectors, settings.cluster)
        scores = timed("evaluate", evaluate.fn, place, corpus, vectors, clustering, settings.evaluate)
        page = timed(
            "draw",
            draw.fn,
            place,
            guide,
            corpus,
            checkpoint,
            encoder,
            vectors,
            clustering,
            scores,
            settings.publish,
            None,
            datetime.now(UTC),
        )
        model = timed("pack", pack.fn, place, corpus, encoder, vectors)
        verdict = timed("promote", promote.fn, place, guide, corpus, model, scores, settings.publish, run)
        timed(
            "report",
            report.fn,
            place,
            guide,
            corpus,
            clustering,
            checkpoint,
            scores,
            page,
            model,
            verdict,
            [],
            run,
        )
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(feed) for feed in sys.argv[2:]])
