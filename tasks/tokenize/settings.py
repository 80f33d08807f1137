"""Settings of the tokenize stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM
from tasks.pool import AUTOMATIC
from tasks.tokenize.splits import SplitSettings
from tasks.tokenize.strategies import Tokenizer
from tasks.tokenize.words import CONTEXT_KINDS, WordsAndNgrams


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
    workers: int = field(
        default=AUTOMATIC, metadata={"description": "Processes that tokenize; 0 is this one, -1 chooses: 0 below 50,000 titles, else one a core", "ge": AUTOMATIC, "le": 256}
    )
    pool: Literal["processes", "dask", "ray"] = field(default="processes", metadata={"description": "Where they run (dask and ray: extras of those names)"})
    pool_address: str = field(default="", metadata={"description": "Address of the Dask scheduler or Ray cluster; empty starts one here. Its workers must see the home"})
    piece: int = field(default=20_000, metadata={"description": "Titles tokenized at a time: what a process holds in memory", "ge": 1})
