"""Settings of the tokenize stage."""

from typing import Literal

from tasks.form import configurable, setting
from tasks.pool import AUTOMATIC
from tasks.text.tokenizers import Tokenizer
from tasks.text.words import CONTEXT_KINDS, WordsAndNgrams
from tasks.tokenize.splits import SplitSettings

_WORKERS = "Processes that tokenize; 0 is this one, -1 chooses: 0 below 50,000 titles, else one a core"
_ADDRESS = "Address of a Dask scheduler or Ray cluster; empty starts one here. Workers must mount the home"

_EXPONENT = "Power of the inverse-frequency weight of a row's step; 0 is off"
_CONTEXT = (
    "What is known of how a title airs, beside its text; pattern: after `guidespace patterns`; empty: nothing"
)
_POOL = "Where they run (dask and ray: extras of those names)"


@configurable
class TokenizeSettings:
    """How titles become tokens, which are held out, and the weights of rare tokens."""

    tokenizer: Tokenizer = setting(WordsAndNgrams(), "What a title's tokens are")
    splits: SplitSettings = setting(SplitSettings(), "What is held out")
    context: tuple[Literal["channel", "hour", "weekday", "duration", "manner", "pattern"], ...] = setting(
        CONTEXT_KINDS, _CONTEXT
    )
    weight_exponent: float = setting(0.25, _EXPONENT, ge=0, le=1)
    smallest_weight: float = setting(0.2, "Lower clamp of that weight", gt=0, le=1)
    largest_weight: float = setting(5.0, "Upper clamp of that weight", ge=1)
    workers: int = setting(AUTOMATIC, _WORKERS, ge=AUTOMATIC, le=256)
    pool: Literal["processes", "dask", "ray"] = setting("processes", _POOL)
    pool_address: str = setting("", _ADDRESS)
    piece: int = setting(20_000, "Titles tokenized at a time: what a process holds in memory", ge=1)
