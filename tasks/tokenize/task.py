"""Stage tokenize: Guide to Vocabulary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from prefect import get_run_logger, task

from storage.artifacts import Guide, Vocabulary
from storage.catalogue.contexts import title_contexts
from storage.catalogue.frequencies import write_token_table
from storage.catalogue.titles import raw_titles
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.shows import gather_shows
from tasks.tokenize.splits import NEXT_PERIOD, SPLITS, TRAIN
from tasks.tokenize.words import CONTEXT_KINDS, KINDS

STAGE = Stage(Vocabulary, __file__)


@task(**STAGE.options)
def tokenize(home: str, guide: Guide, settings: TokenizeSettings) -> Vocabulary:
    """Splits titles, takes them apart and counts their tokens over training titles.

    Publishes titles.parquet (a row a title), variants.parquet (raw title to title), contexts.parquet (how each title
    airs, as tokens) and tokens.parquet (the frequency table; row i is token id i).
    """
    shows = gather_shows(raw_titles(Workspace(home).folder(guide)), settings.splits)
    training = [(row, raw) for row, (raw, split) in enumerate(zip(shows.raw_titles, shows.split.codes, strict=True)) if split == TRAIN]
    occurrences = [(row, KINDS[kind], token) for row, raw in training for kind, token in settings.tokenizer.tokens(raw)]
    columns = [list(column) for column in zip(*occurrences, strict=True)] or [[], [], []]
    table = pa.table({"title_id": pa.array(columns[0], pa.int32()), "kind": pa.array(columns[1], pa.string()), "token": pa.array(columns[2], pa.string())})
    later = np.flatnonzero(shows.split.codes == NEXT_PERIOD).tolist()
    contexts = title_contexts(Workspace(home).folder(guide), shows.variants, later, shows.split.cut, settings.context)
    of_training = contexts.filter(pa.array((shows.split.codes == TRAIN)[contexts["title_id"].to_numpy()]))
    table = pa.concat_tables([table, of_training.cast(table.schema)])

    with STAGE.publish(home, guide, settings) as draft:
        tokens = write_token_table(
            table,
            ("bigram", "ngram", "edge", *CONTEXT_KINDS),
            settings.tokenizer.minimum_ngram_titles,
            settings.weight_exponent,
            settings.smallest_weight,
            settings.largest_weight,
            draft.folder / "tokens.parquet",
        )
        pq.write_table(shows.table(), draft.folder / "titles.parquet", compression="zstd")
        pq.write_table(contexts, draft.folder / "contexts.parquet", compression="zstd")
        pq.write_table(shows.variants, draft.folder / "variants.parquet", compression="zstd")
        draft.counts |= {"titles": len(shows.raw_titles), "tokens": tokens}
        draft.counts |= {name: int((shows.split.codes == code).sum()) for code, name in enumerate(SPLITS)}
        draft.details |= {"next_period_from": shows.split.cut, "next_period_reason": shows.split.reason, "salt": settings.splits.salt}
    get_run_logger().info("%(titles)d titles, %(train)d of them for training; %(tokens)d tokens", draft.counts)
    return draft.artifact
