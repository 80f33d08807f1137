"""Defines the Prefect task that computes a Vocabulary (titles and their tokens) from a Guide."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Guide, Vocabulary
from storage.catalogue.connection import temporary_database
from storage.cores import cores
from storage.formats.vocabulary import NEXT_PERIOD, SPLITS
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.pool import open_pool
from tasks.text.tokenizers import write_tokenizer
from tasks.text.words import CONTEXT_KINDS
from tasks.tokenize.contexts import write_context_counts, write_contexts
from tasks.tokenize.pieces import gather_shows, tokenize_titles
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.shows import write_raw_titles
from tasks.tokenize.token_table import TokenRules, write_token_table

STAGE = Stage(Vocabulary, __file__)
MIN_PARALLEL_TITLES = 50_000  # with fewer titles, starting processes takes longer than it saves


@task(**STAGE.options)
def tokenize(home: str, guide: Guide, settings: TokenizeSettings) -> Vocabulary:
    """Assigns titles to training and held-out sets, tokenizes titles, and counts tokens of training titles.

    storage/formats/vocabulary.py describes the files of the Vocabulary.
    """
    workspace = Workspace(home)
    guide_folder = workspace.folder(guide)
    with (
        STAGE.publish(home, guide, settings) as draft,
        tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as name,
        temporary_database(Path(name)) as connection,
    ):
        folder, work = draft.folder, Path(name)
        raw, context_counts = work / "raw.parquet", work / "contexts.parquet"
        titles, variants = folder / "titles.parquet", folder / "variants.parquet"
        contexts = folder / "contexts.parquet"
        write_raw_titles(connection, guide_folder, raw, settings.piece)
        is_small = pq.read_metadata(raw).num_rows < MIN_PARALLEL_TITLES
        workers = settings.count_workers(automatic=0 if is_small else cores())
        with (
            open_pool(settings.pool, workers, settings.pool_address) as submit,
            ThreadPoolExecutor(1) as executor,
        ):
            splits = gather_shows(connection, raw, settings.splits, folder, settings.piece, submit)
            next_period = np.flatnonzero(splits.codes == NEXT_PERIOD)
            context_inputs = (
                guide_folder,
                variants,
                next_period,
                splits.next_period_begin,
                settings.context,
                contexts,
            )
            # runs in a thread, because DuckDB releases the GIL
            contexts_written = executor.submit(write_contexts, connection.cursor(), *context_inputs)
            write_tokenizer(settings.tokenizer, folder)
            dictionaries = tokenize_titles(titles, folder, submit)
            contexts_written.result()
        write_context_counts(connection, contexts, titles, context_counts)
        rules = TokenRules(
            thinned=("bigram", "ngram", "edge", *CONTEXT_KINDS),
            minimum_titles=settings.tokenizer.minimum_ngram_titles,
            exponent=settings.weight_exponent,
            smallest=settings.smallest_weight,
            largest=settings.largest_weight,
        )
        tokens = write_token_table(
            connection, [*dictionaries, context_counts], rules, folder / "tokens.parquet"
        )
        draft.counts |= {"titles": len(splits.codes), "tokens": tokens}
        draft.counts |= {name: int((splits.codes == code).sum()) for code, name in enumerate(SPLITS)}
        period = {"next_period_from": splits.next_period_begin, "next_period_reason": splits.reason}
        draft.details |= {**period, "salt": settings.splits.salt}
    summary = "%(titles)d titles, %(train)d of them for training; %(tokens)d tokens"
    get_run_logger().info(summary, draft.counts)
    return draft.artifact
