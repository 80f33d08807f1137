"""Defines the settings for splitting titles into tokens, and for held-out sets."""

from typing import Literal

from tasks.form import configurable, setting
from tasks.pool_settings import PoolSettings
from tasks.text.tokenizers import Tokenizer
from tasks.text.words import CONTEXT_KINDS, AiringKind, FactKind, WordsAndNgrams
from tasks.tokenize.splits import SplitSettings

_EXPONENT_HELP = "Exponent of the inverse-frequency weight of updates of a token's embedding; 0: no weights"
_CONTEXT_HELP = "Context of titles (airings and facts) used as tokens; pattern requires `guidespace patterns`"
_REUSE_HELP = "Share of new, changed and removed titles up to which an earlier model is used; 0: always train"
ContextKind = Literal[AiringKind, FactKind, "pattern"]


@configurable
class TokenizeSettings(PoolSettings):
    """Settings for tokens of titles, held-out sets, and weights of rare tokens in training."""

    tokenizer: Tokenizer = setting(WordsAndNgrams(), "Tokenizer of titles")
    splits: SplitSettings = setting(SplitSettings(), "Held-out sets")
    context: tuple[ContextKind, ...] = setting(CONTEXT_KINDS, _CONTEXT_HELP)
    weight_exponent: float = setting(0.25, _EXPONENT_HELP, ge=0, le=1)
    smallest_weight: float = setting(0.2, "Lower bound of the weight of a token", gt=0, le=1)
    largest_weight: float = setting(5.0, "Upper bound of the weight of a token", ge=1)
    reuse_share: float = setting(0.03, _REUSE_HELP, ge=0, le=1)
    piece: int = setting(20_000, "Titles that a process has in memory at once", ge=1)
