"""What is asked of baselines and the space alike, and the baselines' answers; without Prefect, for a process
of its own.
"""

from collections.abc import Generator, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.artifacts import Corpus, Progress
from storage.formats.baselines import BaselineScores
from storage.formats.corpus import open_corpus
from storage.workspace import Workspace
from tasks.baselines.inputs import TitleInputs, dense_inputs, join_contexts
from tasks.evaluate.settings import EvaluateSettings
from tasks.scoring.baselines import ask_baselines
from tasks.scoring.protocols import HeldOut, Titles, held_out_sets

CONTEXT_REASON = "tokenize.context is empty: nothing is known of how titles air"


def fit_and_ask(
    home: str, corpus: Corpus, settings: EvaluateSettings
) -> Generator[Progress, None, BaselineScores]:
    """Scores the baselines on held-out titles; the generator's value is the result."""
    workspace = Workspace(home)
    titles, about = Titles.of(open_corpus(workspace.folder(corpus))), read_titles(workspace, corpus)
    reasons = reasons_for_none(workspace, corpus, about)
    used = titles.used
    titles, about = titles.take(used), about.take(used)

    def read(rows: np.ndarray) -> TitleInputs:
        opened, some = open_corpus(workspace.folder(corpus)), about.take(rows)
        dense = dense_inputs(opened.sentences, opened.descriptions, used[rows])
        spoken = "title_context" not in reasons
        contexts = join_contexts(some["context"].to_pylist()) if spoken else ()
        return TitleInputs(some["raw_title"].to_pylist(), dense, contexts)

    sets = draw_held_out(titles, reasons, settings)
    return (yield from ask_baselines(titles, read, settings.baselines, sets))


def read_titles(workspace: Workspace, corpus: Corpus) -> pa.Table:
    """What is written of titles: as they aired, how they air, and their language."""
    columns = ["raw_title", "context", "language"]
    return pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=columns)


def reasons_for_none(workspace: Workspace, corpus: Corpus, about: pa.Table) -> dict[str, str]:
    """Why a form or a protocol of held-out sets is empty, by name."""
    no_period = workspace.details(corpus)["next_period_reason"] or "no labelled title is in next_period"
    tokens = sum(len(chunk.flatten()) for chunk in about["context"].chunks)
    return {"next_period": str(no_period)} | ({} if tokens else {"title_context": CONTEXT_REASON})


def draw_held_out(titles: Titles, reasons: dict[str, str], settings: EvaluateSettings) -> Iterator[HeldOut]:
    """Held-out sets and resamples, the same for the space and for the baselines."""
    return held_out_sets(titles, settings.resamples, np.random.default_rng(settings.seed), reasons)
