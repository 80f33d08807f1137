"""Defines the Prefect task that computes a Vocabulary (titles and their tokens) from a Guide."""

import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Guide, Vocabulary
from storage.catalogue.connection import Connection, temporary_database
from storage.cores import cores
from storage.formats.vocabulary import NEXT_PERIOD, SPLITS
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.pool import Submit, open_pool
from tasks.text.tokenizers import write_tokenizer
from tasks.text.words import CONTEXT_KINDS
from tasks.tokenize.contexts import write_context_counts, write_contexts
from tasks.tokenize.pieces import gather_shows, tokenize_titles, write_titles
from tasks.tokenize.reuse import TOKENS_OF, EarlierVocabulary
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.shows import write_raw_titles
from tasks.tokenize.splits import EarlierSplit, Split
from tasks.tokenize.token_table import TokenRules, write_token_table

STAGE = Stage(Vocabulary, __file__)
MIN_PARALLEL_TITLES = 50_000  # with fewer titles, starting worker processes takes longer than it saves


@task(**STAGE.options)
def tokenize(
    home: str, guide: Guide, settings: TokenizeSettings, previous: Vocabulary | None = None
) -> Vocabulary:
    """Assigns titles to training and held-out sets, tokenizes titles, and counts tokens of training titles.

    storage/formats/vocabulary.py describes the files of the Vocabulary.

    Args:
        home: The home folder.
        guide: Snapshot of the catalogue.
        settings: Settings of the stage.
        previous: Vocabulary of an earlier night, whose tokens are used again if few titles differ (reuse.py).
    """
    workspace = Workspace(home)
    earlier = previous and EarlierVocabulary(workspace.folder(previous), settings.reuse_share)
    with (
        STAGE.publish(home, guide, settings) as draft,
        tempfile.TemporaryDirectory(dir=draft.folder, prefix="work-") as work,
        temporary_database(Path(work)) as connection,
    ):
        folder, token_file = draft.folder, draft.folder / "tokens.parquet"
        raw_titles = Path(work) / "raw.parquet"
        write_raw_titles(connection, workspace.folder(guide), raw_titles, settings.piece)
        is_small = pq.read_metadata(raw_titles).num_rows < MIN_PARALLEL_TITLES
        workers = settings.count_workers(automatic=0 if is_small else cores())
        write_tokenizer(settings.tokenizer, folder)
        with open_pool(settings.pool, workers, settings.pool_address) as submit:
            shows = gather_shows(connection, raw_titles, folder, submit)
            if earlier and not earlier.matches(connection, shows):
                earlier = None
            write_tokens = partial(
                _write_titles_and_tokens, connection, workspace.folder(guide), shows, folder, submit, settings
            )
            split, dictionary_files = write_tokens(earlier=earlier and earlier.split())
            titles, contexts = folder / "titles.parquet", folder / "contexts.parquet"
            if earlier and not earlier.matches(connection, titles, contexts):
                earlier = None
                split, dictionary_files = write_tokens(earlier=None)
        if earlier:
            shutil.copyfile(earlier.folder / token_file.name, token_file)
            draft.details[TOKENS_OF] = previous.digest if previous else ""
        else:
            _write_token_table(connection, dictionary_files, folder, Path(work), settings)
        draft.counts |= {"titles": len(split.codes), "tokens": pq.read_metadata(token_file).num_rows}
        draft.counts |= {name: int((split.codes == code).sum()) for code, name in enumerate(SPLITS)}
        period = {"next_period_from": split.next_period_begin, "next_period_reason": split.reason}
        draft.details |= {**period, "salt": settings.splits.salt}
    origin = ", numbered as in an earlier night because few titles differ" if earlier else ""
    summary = "%(titles)d titles, %(train)d of them for training; %(tokens)d tokens"
    get_run_logger().info(summary + origin, draft.counts)
    return draft.artifact


def _write_titles_and_tokens(
    connection: Connection,
    guide: Path,
    shows: Path,
    folder: Path,
    submit: Submit,
    settings: TokenizeSettings,
    *,
    earlier: EarlierSplit | None,
) -> tuple[Split, list[Path]]:
    """Writes titles.parquet, contexts.parquet and the tokens of each piece of titles.

    Returns the training and held-out sets, and the dictionary file of each piece.
    """
    titles = folder / "titles.parquet"
    split = write_titles(shows, settings.splits, titles, settings.piece, earlier)
    with ThreadPoolExecutor(1) as executor:
        # A thread is enough, because DuckDB releases the GIL.
        contexts_written = executor.submit(
            write_contexts,
            connection.cursor(),
            guide=guide,
            variants=folder / "variants.parquet",
            next_period_ids=np.flatnonzero(split.codes == NEXT_PERIOD),
            next_period_begin=split.next_period_begin,
            kinds=settings.context,
            path=folder / "contexts.parquet",
        )
        dictionary_files = tokenize_titles(titles, folder, submit)
        contexts_written.result()
    return split, dictionary_files


def _write_token_table(
    connection: Connection,
    dictionary_files: Sequence[Path],
    folder: Path,
    work: Path,
    settings: TokenizeSettings,
) -> None:
    """Counts the tokens of titles and contexts, and writes tokens.parquet."""
    context_counts = work / "contexts.parquet"
    write_context_counts(connection, folder / "contexts.parquet", folder / "titles.parquet", context_counts)
    rules = TokenRules(
        filtered_kinds=("bigram", "ngram", "edge", *CONTEXT_KINDS),
        minimum_titles=settings.tokenizer.minimum_ngram_titles,
        exponent=settings.weight_exponent,
        smallest=settings.smallest_weight,
        largest=settings.largest_weight,
    )
    write_token_table(connection, [*dictionary_files, context_counts], rules, folder / "tokens.parquet")
