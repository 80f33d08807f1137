"""Stage augment: Checkpoint to Lexicon."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from safetensors.numpy import load_file

from storage.artifacts import Checkpoint, Lexicon, Vocabulary
from storage.stages import Stage
from storage.workspace import Workspace
from tasks.augment import lexicon
from tasks.augment.settings import AugmentSettings
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.words import KINDS, WORD
from tasks.train.settings import TrainSettings

STAGE = Stage(Lexicon, __file__)


@task(**STAGE.options)
def augment(home: str, vocabulary: Vocabulary, checkpoint: Checkpoint, tokenizing: TokenizeSettings, training: TrainSettings, settings: AugmentSettings) -> Lexicon:
    """Gives n-grams what the trained words know, and publishes all that is needed to embed any title."""
    workspace = Workspace(home)
    tokens_parquet = workspace.folder(vocabulary) / "tokens.parquet"
    table = pq.read_table(tokens_parquet, columns=["kind", "token", "document_frequency"])
    trained = load_file(workspace.folder(checkpoint) / "checkpoint.safetensors")
    rows, touched = trained["rows"], trained["touched"]
    kinds = np.array([KINDS.index(kind) for kind in table["kind"].to_pylist()], dtype=np.int8)
    tokens = table["token"].to_pylist()
    learnt = np.flatnonzero((kinds == WORD) & touched)
    ngrams = settings.strategy.fit([tokens[row] for row in learnt], rows[learnt], table["document_frequency"].to_numpy()[learnt])
    ids = lexicon.token_index(kinds, tokens, touched)
    with STAGE.publish(home, vocabulary, checkpoint, tokenizing, training, settings) as draft:
        lexicon.Lexicon(tokenizing.tokenizer, training.encoder, ids, rows, kinds, ngrams).save(draft.folder, tokens_parquet)
        draft.counts |= {"tokens": len(ids), "words": len(learnt), "ngrams": len(ngrams.bucket_ids)}
    get_run_logger().info("%(ngrams)d n-grams know what %(words)d trained words know", draft.counts)
    return draft.artifact
