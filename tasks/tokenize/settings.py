"""Settings of the tokenize stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM
from tasks.tokenize.splits import SplitSettings
from tasks.tokenize.words import CONTEXT_KINDS, Tokenizer, WordsAndNgrams


@dataclass(frozen=True, kw_only=True)
class TokenizeSettings:
    """How titles become tokens, which are held out, and how much further the rows of rare tokens step."""

    __pydantic_config__ = FORM
    tokenizer: Tokenizer = field(default=WordsAndNgrams(), metadata={"description": "What a title's tokens are"})
    splits: SplitSettings = field(default=SplitSettings(), metadata={"description": "What is held out"})
    context: tuple[Literal["channel", "hour", "weekday", "duration", "manner"], ...] = field(
        default=CONTEXT_KINDS, metadata={"description": "What is known of how a title airs, beside its text; empty: nothing"}
    )
    weight_exponent: float = field(default=0.25, metadata={"description": "Power of the inverse-frequency weight of a row's step; 0 is off", "ge": 0, "le": 1})
    smallest_weight: float = field(default=0.2, metadata={"description": "Lower clamp of that weight", "gt": 0, "le": 1})
    largest_weight: float = field(default=5.0, metadata={"description": "Upper clamp of that weight", "ge": 1})
