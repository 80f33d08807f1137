"""Scores the baselines (simple classifiers of categories) on held-out titles.

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
from tasks.baselines.inputs import TitleInputs, join_contexts, unit_sentence_features
from tasks.evaluate.settings import EvaluateSettings
from tasks.scoring.baselines import run_baselines
from tasks.scoring.protocols import CorpusTitles, HeldOut, held_out_sets

NO_CONTEXT_REASON = "the setting tokenize.context is empty, so titles have no context tokens"


def fit_and_score_baselines(
    home: str, corpus: Corpus, settings: EvaluateSettings
) -> Generator[Progress, None, BaselineScores]:
    """Fits the baselines of ``settings`` to the training titles of a Corpus and scores them.

    Yields progress, and returns the scores as the value of the generator.
    """
    workspace = Workspace(home)
    titles = CorpusTitles.from_corpus(open_corpus(workspace.folder(corpus)))
    table = read_titles(workspace, corpus)
    reasons = empty_reasons(workspace, corpus, table)
    scored_rows = titles.used_rows
    titles, table = titles.take(scored_rows), table.take(scored_rows)

    def read(rows: np.ndarray) -> TitleInputs:
        corpus_files, selected_titles = open_corpus(workspace.folder(corpus)), table.take(rows)
        sentence_features = unit_sentence_features(
            corpus_files.sentences, corpus_files.descriptions, scored_rows[rows]
        )
        has_context = "title_context" not in reasons
        contexts = join_contexts(selected_titles["context"].to_pylist()) if has_context else ()
        return TitleInputs(selected_titles["raw_title"].to_pylist(), sentence_features, contexts)

    sets = draw_held_out(titles, reasons, settings)
    return (yield from run_baselines(titles, read, settings.baselines, sets))


def read_titles(workspace: Workspace, corpus: Corpus) -> pa.Table:
    """Reads the columns raw_title, context (context tokens) and language of all titles of a Corpus."""
    columns = ["raw_title", "context", "language"]
    return pq.read_table(workspace.folder(corpus) / "titles.parquet", columns=columns)


def empty_reasons(workspace: Workspace, corpus: Corpus, table: pa.Table) -> dict[str, str]:
    """Returns the reasons why input forms or held-out sets have no titles, by name of the form or set.

    The held-out set next_period always has a reason, which is used only if the set is empty.
    """
    next_period = workspace.details(corpus)["next_period_reason"] or "no title of next_period has a label"
    token_count = sum(len(chunk.flatten()) for chunk in table["context"].chunks)
    return {"next_period": str(next_period)} | ({} if token_count else {"title_context": NO_CONTEXT_REASON})


def draw_held_out(
    titles: CorpusTitles, reasons: dict[str, str], settings: EvaluateSettings
) -> Iterator[HeldOut]:
    """Yields the held-out sets. Title vectors and baselines get the same bootstrap resamples."""
    return held_out_sets(titles, settings.resamples, np.random.default_rng(settings.seed), reasons)
