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
from storage.catalogue.token_ids import token_remap
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.pool import open_pool
from tasks.tokenize.growth import find_ancestor, lineage
from tasks.tokenize.pieces import processes, tokenize_titles, training_titles
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.shows import gather_shows
from tasks.tokenize.splits import NEXT_PERIOD, SPLITS
from tasks.tokenize.strategies import read_tokenizer, write_tokenizer
from tasks.tokenize.words import CONTEXT_KINDS

STAGE = Stage(Vocabulary, __file__)


def ancestor_of(home: str, guide: Guide, settings: TokenizeSettings) -> Vocabulary | None:
    """The vocabulary whose token ids tonight's keeps: yesterday's of the same lineage, or None (tasks/tokenize/growth.py)."""
    return find_ancestor(Workspace(home), STAGE.key(guide, settings), lineage(settings))


@task(**STAGE.options)
def tokenize(home: str, guide: Guide, settings: TokenizeSettings, ancestor: Vocabulary | None = None) -> Vocabulary:
    """Splits titles, takes them apart and counts their tokens over training titles.

    Publishes titles.parquet (a row a title), variants.parquet (raw title to title), contexts.parquet (how each title
    airs, as tokens), tokens.parquet (the frequency table; row i is token id i), tokenizer.json (what makes tokens of a
    title, learnt or taken over from the ancestor), the tokens of all titles piece by piece (tasks/tokenize/pieces.py)
    and, where it grew from another vocabulary, remap.npy (where that one's tokens are now).

    Args:
        home: Where everything is.
        guide: What is aired.
        settings: Tokenizer, splits, weights, compaction.
        ancestor: What ``ancestor_of`` says; None numbers tokens afresh.
    """
    workspace = Workspace(home)
    before = workspace.folder(ancestor) / "tokens.parquet" if ancestor else None
    with STAGE.publish(home, guide, settings, ancestor) as draft, tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as name:
        raw, folder = Path(name) / "raw.parquet", draft.folder
        write_raw_titles(workspace.folder(guide), raw, settings.piece)
        with open_pool(replace(settings, workers=processes(settings, pq.read_metadata(raw).num_rows))) as submit:
            split = gather_shows(raw, settings.splits, folder, settings.piece, submit)
            write_tokenizer(read_tokenizer(workspace.folder(ancestor)) if ancestor else settings.tokenizer.fit(training_titles(folder / "titles.parquet")), folder)
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
            hot_share=settings.hot_share,
            compact_at=settings.compact_at,
        )
        counted = write_token_table([*dictionaries, context_counts], rules, folder / "tokens.parquet", before)
        if before:
            np.save(folder / "remap.npy", token_remap(before, folder / "tokens.parquet", Path(name)))
        draft.counts |= {"titles": len(split.codes), "tokens": counted.tokens, "tokens_alive": counted.alive, "tokens_kept": counted.kept}
        draft.counts |= {name: int((split.codes == code).sum()) for code, name in enumerate(SPLITS)}
        draft.details |= {"next_period_from": split.cut, "next_period_reason": split.reason, "salt": settings.splits.salt}
        draft.details |= {"base": STAGE.key(guide, settings), "lineage": lineage(settings)}
        draft.details |= {"ancestor": {"path": ancestor.path, "digest": ancestor.digest} if ancestor else None, "compacted": counted.compacted}
        draft.details |= {"hot_hit_rate": counted.hot_hit_rate, "sorted_hit_rate": counted.sorted_hit_rate}
    get_run_logger().info("%(titles)d titles, %(train)d of them for training; %(tokens)d tokens, %(tokens_kept)d of them under yesterday's ids", draft.counts)
    if counted.compacted:
        get_run_logger().info("token ids are sorted anew: the first %.0f %% had come to serve too little", 100 * settings.hot_share)
    return draft.artifact
