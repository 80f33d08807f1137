"""Stage tokenize: Guide to Vocabulary."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Guide, Vocabulary
from storage.catalogue.contexts import write_context_counts, write_contexts
from storage.catalogue.frequencies import TokenRules, write_token_table
from storage.catalogue.shows import write_raw_titles
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.pool import open_pool
from tasks.tokenize.pieces import processes, tokenize_titles, training_titles
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.shows import gather_shows
from tasks.tokenize.splits import NEXT_PERIOD, SPLITS
from tasks.tokenize.strategies import write_tokenizer
from tasks.tokenize.words import CONTEXT_KINDS

STAGE = Stage(Vocabulary, __file__)


@task(**STAGE.options)
def tokenize(home: str, guide: Guide, settings: TokenizeSettings) -> Vocabulary:
    """Splits titles, takes them apart and counts their tokens over training titles.

    Publishes titles.parquet (a row a title), variants.parquet (raw title to title), contexts.parquet (how each title
    airs, as tokens), tokens.parquet (the frequency table; row i is token id i), tokenizer.json (what makes tokens of a
    title) and the tokens of all titles piece by piece (tasks/tokenize/pieces.py).

    Args:
        home: Where everything is.
        guide: What is aired.
        settings: Tokenizer, splits, weights.
    """
    workspace = Workspace(home)
    with STAGE.publish(home, guide, settings) as draft, tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as name:
        raw, folder = Path(name) / "raw.parquet", draft.folder
        write_raw_titles(workspace.folder(guide), raw, settings.piece)
        with open_pool(replace(settings, workers=processes(settings, pq.read_metadata(raw).num_rows))) as submit:
            split = gather_shows(raw, settings.splits, folder, settings.piece, submit)
            write_tokenizer(settings.tokenizer.fit(training_titles(folder / "titles.parquet")), folder)
            dictionaries = tokenize_titles(folder / "titles.parquet", folder, submit)
        later = np.flatnonzero(split.codes == NEXT_PERIOD)
        write_contexts(workspace.folder(guide), folder / "variants.parquet", later, split.cut, settings.context, folder / "contexts.parquet")
        context_counts = Path(name) / "contexts.parquet"
        write_context_counts(folder / "contexts.parquet", folder / "titles.parquet", context_counts)
        rules = TokenRules(
            thinned=("bigram", "ngram", "edge", *CONTEXT_KINDS),
            minimum_titles=settings.tokenizer.minimum_ngram_titles,
            exponent=settings.weight_exponent,
            smallest=settings.smallest_weight,
            largest=settings.largest_weight,
        )
        tokens = write_token_table([*dictionaries, context_counts], rules, folder / "tokens.parquet")
        draft.counts |= {"titles": len(split.codes), "tokens": tokens}
        draft.counts |= {name: int((split.codes == code).sum()) for code, name in enumerate(SPLITS)}
        draft.details |= {"next_period_from": split.cut, "next_period_reason": split.reason, "salt": settings.splits.salt}
    get_run_logger().info("%(titles)d titles, %(train)d of them for training; %(tokens)d tokens", draft.counts)
    return draft.artifact
