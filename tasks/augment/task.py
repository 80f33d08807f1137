"""Defines the Prefect task of the stage augment, which publishes a title encoder for all words."""

import numpy as np
import pyarrow.parquet as pq
from prefect import get_run_logger, task
from safetensors import safe_open

from storage.arrays import row_blocks
from storage.artifacts import Checkpoint, Corpus, TitleEncoderFiles, Vocabulary
from storage.formats.corpus import open_corpus
from storage.formats.vocabulary import PLACEHOLDER
from storage.home.workspace import Workspace
from storage.stages import Stage
from tasks.augment.settings import AugmentSettings
from tasks.encoder import Encoder
from tasks.encoder.bag import LAYER
from tasks.encoder.meaning import Meaning
from tasks.encoder.title_encoder import TitleEncoder, token_index
from tasks.encoder.unseen_words import NgramRows, UnseenWords
from tasks.text.tokenizers import read_tokenizer
from tasks.text.words import KINDS, WORD

STAGE = Stage(TitleEncoderFiles, __file__)


@task(**STAGE.options)
def augment(
    home: str,
    vocabulary: Vocabulary,
    corpus: Corpus,
    checkpoint: Checkpoint,
    encoder: Encoder,
    settings: AugmentSettings,
) -> TitleEncoderFiles:
    """Prepares vectors for unseen words, and publishes the title encoder, which can embed any title.

    ``encoder`` has the settings with which the checkpoint was trained.
    """
    workspace = Workspace(home)
    tokens_parquet = workspace.folder(vocabulary) / "tokens.parquet"
    table = pq.read_table(tokens_parquet, columns=["kind", "token", "document_frequency"])
    # Rows may exceed the memory. Therefore they are memory-mapped by torch (NumPy would copy them), and saved
    # block by block.
    with safe_open(workspace.folder(checkpoint) / "checkpoint.safetensors", framework="pt") as handle:
        rows, is_touched, layer = (
            handle.get_tensor(name).numpy() for name in ("rows", "touched", f"{LAYER}.rows")
        )
        slots = None
        if encoder.nearest_slot:
            keys = handle.get_tensor("buffer.memory_keys").numpy()
            slots = keys[keys.any(axis=1)]
    frequency, tokens = table["document_frequency"].to_numpy(), table["token"].to_pylist()
    is_touched &= frequency > 0
    kinds = np.array([KINDS.index(kind) for kind in table["kind"].to_pylist()], dtype=np.int8)
    word_ids = np.flatnonzero((kinds == WORD) & is_touched)
    unseen_words: UnseenWords = NgramRows.empty(rows.shape[1])
    if len(word_ids):
        words = [tokens[row] for row in word_ids]
        unseen_words = settings.strategy.fit(words, rows[word_ids], frequency[word_ids])
    ids = token_index(kinds, tokens, is_touched)
    tokenizer = read_tokenizer(workspace.folder(vocabulary))
    titles, meaning = open_corpus(workspace.folder(corpus)), None
    if layer.shape[1]:
        titles_with_text = np.flatnonzero(titles.split != PLACEHOLDER)
        blocks = [titles_with_text[block] for block in row_blocks(len(titles_with_text))]
        features = (
            encoder.sentence_features(titles.sentences[block], titles.descriptions[block]) for block in blocks
        )
        meaning = Meaning.fit(workspace.details(corpus)["sentences"], layer, features)
    with STAGE.publish(home, vocabulary, corpus, checkpoint, encoder, settings) as draft:
        title_encoder = TitleEncoder(tokenizer, encoder, ids, rows, kinds, unseen_words, meaning, slots)
        title_encoder.save(draft.folder, tokens_parquet)
        draft.counts |= {"tokens": len(ids), "words": len(word_ids), unseen_words.key: unseen_words.size}
        draft.details["checkpoint"] = checkpoint.digest
    logger = get_run_logger()
    logger.info(
        "vectors of unseen words are computed from %d rows (%s), fitted to %d trained words",
        unseen_words.size,
        unseen_words.key,
        len(word_ids),
    )
    return draft.artifact
