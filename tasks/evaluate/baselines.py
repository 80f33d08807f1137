"""Scores the baseline classifiers on held-out titles.

This module does not import Prefect, because it runs in a helper process.
"""

from collections.abc import Generator, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.artifacts import Corpus, Progress
from storage.formats.baselines import BaselineScores
from storage.formats.corpus import open_corpus
from storage.home.workspace import Workspace
from tasks.baselines.inputs import TitleInputs, dense_inputs, join_contexts
from tasks.evaluate.settings import EvaluateSettings
from tasks.scoring.baselines import run_baselines
from tasks.scoring.protocols import CorpusTitles, HeldOut, held_out_sets

CONTEXT_REASON = "tokenize.context is empty: titles have no context tokens"


def fit_and_score_baselines(
    home: str, corpus: Corpus, settings: EvaluateSettings
) -> Generator[Progress, None, BaselineScores]:
    """Fits and scores the baselines. Yields progress, and returns the scores as value of the generator."""
    workspace = Workspace(home)
    titles, table = (
        CorpusTitles.from_corpus(open_corpus(workspace.folder(corpus))),
        read_titles(workspace, corpus),
    )
    reasons = empty_reasons(workspace, corpus, table)
    used_rows = titles.used_rows
    titles, table = titles.take(used_rows), table.take(used_rows)

    def read(rows: np.ndarray) -> TitleInputs:
        corpus_files, selected_titles = open_corpus(workspace.folder(corpus)), table.take(rows)
        dense = dense_inputs(corpus_files.sentences, corpus_files.descriptions, used_rows[rows])
        has_context = "title_context" not in reasons
        contexts = join_contexts(selected_titles["context"].to_pylist()) if has_context else ()
        return TitleInputs(selected_titles["raw_title"].to_pylist(), dense, contexts)

    sets = draw_held_out(titles, reasons, settings)
    return (yield from run_baselines(titles, read, settings.baselines, sets))


def read_titles(workspace: Workspace, corpus: Corpus) -> pa.Table:
    """Reads the columns raw_title, context (tokens of the airing context) and language of a Corpus."""
    columns = ["raw_title", "context", "language"]
    return pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=columns)


def empty_reasons(workspace: Workspace, corpus: Corpus, table: pa.Table) -> dict[str, str]:
    """Returns the reasons why input forms or held-out sets have no titles, by their names.

    The held-out set next_period always gets a reason, which is used only if the set is empty.
    """
    next_period = workspace.details(corpus)["next_period_reason"] or "no labelled title is in next_period"
    tokens = sum(len(chunk.flatten()) for chunk in table["context"].chunks)
    return {"next_period": str(next_period)} | ({} if tokens else {"title_context": CONTEXT_REASON})


def draw_held_out(
    titles: CorpusTitles, reasons: dict[str, str], settings: EvaluateSettings
) -> Iterator[HeldOut]:
    """Yields the held-out sets with bootstrap resamples, which are equal for title vectors and baselines."""
    return held_out_sets(titles, settings.resamples, np.random.default_rng(settings.seed), reasons)
