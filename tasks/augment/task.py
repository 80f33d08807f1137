"""Stage augment: Checkpoint to Lexicon."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from safetensors import safe_open

from storage.artifacts import Checkpoint, Lexicon, Vocabulary
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.augment import lexicon
from tasks.augment.settings import AugmentSettings
from tasks.augment.source import NgramSource
from tasks.augment.unseen import NgramRows
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.strategies import read_tokenizer
from tasks.tokenize.words import KINDS, WORD
from tasks.train.settings import TrainSettings

STAGE = Stage(Lexicon, __file__)


@task(**STAGE.options)
def augment(home: str, vocabulary: Vocabulary, checkpoint: Checkpoint, tokenizing: TokenizeSettings, training: TrainSettings, settings: AugmentSettings) -> Lexicon:
    """Gives n-grams what the trained words know, and publishes all that is needed to embed any title."""
    workspace = Workspace(home)
    tokens_parquet = workspace.folder(vocabulary) / "tokens.parquet"
    table = pq.read_table(tokens_parquet, columns=["kind", "token", "document_frequency"])
    with safe_open(workspace.folder(checkpoint) / "checkpoint.safetensors", framework="numpy") as opened:  # not the rule's state, which may be twice as large
        rows, touched = opened.get_tensor("rows"), opened.get_tensor("touched")
    frequency = table["document_frequency"].to_numpy()
    touched &= frequency > 0
    kinds = np.array([KINDS.index(kind) for kind in table["kind"].to_pylist()], dtype=np.int8)
    tokens = table["token"].to_pylist()
    learnt = np.flatnonzero((kinds == WORD) & touched)
    source: NgramSource = settings.strategy
    fitted = source.fit([tokens[row] for row in learnt], rows[learnt], frequency[learnt]) if len(learnt) else NgramRows.none(rows.shape[1])
    ids = lexicon.token_index(kinds, tokens, touched)
    with STAGE.publish(home, vocabulary, checkpoint, tokenizing, training, settings) as draft:
        lexicon.Lexicon(read_tokenizer(workspace.folder(vocabulary)), training.encoder, ids, rows, kinds, fitted).save(draft.folder, tokens_parquet)
        draft.counts |= {"tokens": len(ids), "words": len(learnt), "ngrams": len(fitted.bucket_ids)}
        draft.details["checkpoint"] = checkpoint.digest
    get_run_logger().info("%(ngrams)d n-grams know what %(words)d trained words know", draft.counts)
    return draft.artifact
