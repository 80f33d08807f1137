"""Lists the building blocks of the model, with the changes of settings that remove or replace them.

To add a block, add a line to BLOCKS. A change that is not listed can be measured by a command such as
`guidespace ablate --blocks train.optimizer=adam`.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from storage.errors import ExpectedError
from tasks.text.words import AIRING_KINDS, CONTEXT_KINDS, FACT_KINDS

CLUSTER_SETTINGS = "cluster."  # prefix of the settings of clusters
_TITLE_KINDS = ("word", "bigram", "ngram", "edge", "shape", "raw", "mark")


class UnknownBlock(ExpectedError, ValueError):
    """Error: a requested block does not exist."""


class AblationBlock(NamedTuple):
    """Building block of the model, with the changes of settings that remove or replace it."""

    name: str
    subject: str  # beginning of the sentence "Bigrams are worth .031 ± .006", up to "are" or "is"
    changes: tuple[str, ...]  # changes of settings in the form NAME=VALUE, which remove the block

    @property
    def is_of_clusters(self) -> bool:
        """Whether the block changes only settings of clusters, so that it is scored by clusters."""
        return all(change.startswith(CLUSTER_SETTINGS) for change in self.changes)


def _block(name: str, subject: str, *changes: str) -> AblationBlock:
    """Creates a block from its changes of settings."""
    return AblationBlock(name, subject, changes)


def _token_kind(kind: str, subject: str) -> AblationBlock:
    """Creates the block of a kind of tokens, which is removed by the weight 0."""
    return _block(kind, subject, f"train.encoder.{kind}=0")


# Each subject begins a sentence that report.describe_effect ends: "Words are" + " worth .031 ± .006 on …".
BLOCKS = (
    # Tokens of titles.
    _token_kind("word", "Words are"),
    _token_kind("bigram", "Two words in a row are"),
    _block("n-grams", "Character n-grams are", "train.encoder.ngram=0"),
    _token_kind("edge", "Tokens of the first and last word are"),
    _token_kind("shape", "Tokens of length and shape are"),
    _token_kind("raw", "Words and punctuation in their original form are"),
    _token_kind("mark", "Marks that were removed from titles are"),
    # Tokens of context: airings and facts.
    *(_token_kind(kind, f"Context of kind {kind} is") for kind in CONTEXT_KINDS),
    _block("airing", "The airing context is", *(f"train.encoder.{kind}=0" for kind in AIRING_KINDS)),
    _block("facts", "The facts are", *(f"train.encoder.{kind}=0" for kind in FACT_KINDS)),
    _block("context", "The complete context is", *(f"train.encoder.{kind}=0" for kind in CONTEXT_KINDS)),
    # Pretrained vectors.
    _block(
        "sentence", "The sentence vector is", "train.encoder.sentence=0", "train.encoder.sentence_context=0"
    ),
    _block("description", "The vector of descriptions is", "train.encoder.description=0"),
    # Objectives and encoder.
    _block(
        "objective",
        "The label objective, not leave-one-out softmax, is",
        "train.objective=leave_one_out_softmax",
    ),
    _block(
        "margin", "The label objective, not a margin over groups, is", "train.objective=leave_one_out_hinge"
    ),
    _block(
        "negatives", "The label objective, not negatives from the batch, is", "train.objective=neighbourhood"
    ),
    _block("memory", "The label objective without a memory of rare events is", "train.objective=rare_memory"),
    _block(
        "temperature",
        "A separate temperature for vectors with context is",
        "train.objective.context_temperature=0.4",
    ),
    _block(
        "encoder",
        "Weights of token kinds, not equal weights, are",
        *(f"train.encoder.{kind}=1" for kind in (*_TITLE_KINDS, *CONTEXT_KINDS, "length_power")),
    ),
    _block(
        "length power",
        "Dividing a kind by the root of its number of tokens is",
        "train.encoder.length_power=0",
    ),
    _block("dropout", "Dropout of tokens is", "train.dropout=0"),
    _block("context dropout", "Training on titles without context is", "train.context_dropout=0"),
    # Updates.
    _block("scaling", "The inverse-frequency weight is", "tokenize.weight_exponent=0"),
    _block("rule", "Row-wise Adagrad, not Adam, is", "train.optimizer=adam"),
    _block("adagrad", "Row-wise Adagrad, not Adagrad, is", "train.optimizer=adagrad"),
    _block("groups", "A separate optimizer for the sentence layer is", "train.groups=[]"),
    _block("schedule", "A falling learning rate is", "train.schedule=constant"),
    # Before and after training.
    _block("tokenizer", "Words and n-grams, not words alone, are", "tokenize.tokenizer=words"),
    _block(
        "augmentation",
        "Ignoring unseen words, not distilled vectors for them, is",
        "augment.strategy=distilled",
    ),
    # Clusters.
    _block("clusterer", "Chinese Whispers, not DBSCAN, is", "cluster.strategy=dbscan"),
    _block("shared links", "Linking by shared neighbours is", "cluster.strategy.links=cosine"),
)


def choose_blocks(entries: Sequence[str]) -> list[AblationBlock]:
    """Selects blocks by name or shell pattern. If there are no entries, all BLOCKS are selected.

    An entry that contains ``=`` defines a new block: it consists of changes of settings, separated by spaces.

    Raises:
        UnknownBlock: An entry is not the name of a block, and its pattern matches no name.
    """
    blocks_by_name: dict[str, AblationBlock] = {}
    for entry in entries or ["*"]:
        matches = [block for block in BLOCKS if fnmatchcase(block.name, entry)]
        if "=" in entry:
            matches = [_block(entry, f"The preset, not {entry}, is", *entry.split())]
        if not matches:
            names = ", ".join(block.name for block in BLOCKS)
            raise UnknownBlock(
                f"no block is called {entry!r}; expected one of {names}, or a change of a setting NAME=VALUE"
            )
        blocks_by_name |= {block.name: block for block in matches}
    return list(blocks_by_name.values())
