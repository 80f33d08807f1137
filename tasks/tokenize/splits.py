"""Which titles are held out, decided before anything is counted: by salted hash and by date.

Three disjoint held-out sets of at most 5 % of the titles each:

``unseen_show`` by hash of the first content word, so that franchises stay on one side; ``unseen_title`` by
hash of the show key; ``next_period``, shows that first air in the last quarter of the data's span, or in the
shorter tail of it that holds 5 % of the titles. A title held out today is held out tomorrow.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from storage.digests import hashes
from storage.formats.vocabulary import NEXT_PERIOD, PLACEHOLDER, TRAIN, UNSEEN_SHOW, UNSEEN_TITLE
from tasks.form import configurable, setting

DAY = 86_400_000_000  # microseconds
_SALT = "Another salt holds out other titles and starts a new lineage of scores"


@configurable
class SplitSettings:
    """How much is held out, and under which salt."""

    salt: str = setting("guidespace-1", _SALT)
    share: float = setting(0.05, "Largest share of titles in each of the three held-out sets", gt=0, le=0.05)
    shortest_span_days: float = setting(2.0, "A guide that spans less has no next_period", ge=0)


class Split(NamedTuple):
    """int8 codes (index into SPLITS); where next_period begins (microseconds), or why there is none."""

    codes: np.ndarray
    cut: int | None
    reason: str


def split_titles(
    show_keys: Iterable[str],
    families: Iterable[str],
    first_airings: np.ndarray,
    last_start: int,
    placeholder: np.ndarray,
    settings: SplitSettings,
) -> Split:
    """Assigns every title to training or to one held-out set; times are int64 microseconds UTC.

    ``families``: first content words; ``placeholder`` (bool): kept out of training and scoring.
    """
    codes = np.full(len(first_airings), TRAIN, dtype=np.int8)
    allowed = settings.share * max(1, int((~placeholder).sum()))
    for code, texts, name in ((UNSEEN_SHOW, families, "family"), (UNSEEN_TITLE, show_keys, "show")):
        drawn = hashes(texts, f"{settings.salt}/{name}")
        codes[_below(drawn, settings.share, allowed, ~placeholder & (codes == TRAIN))] = code
    cut, reason = _period_cut(first_airings[~placeholder], last_start, allowed, settings.shortest_span_days)
    if cut is not None:
        codes[(codes == TRAIN) & (first_airings >= cut)] = NEXT_PERIOD
    codes[placeholder] = PLACEHOLDER
    return Split(codes, cut, reason)


def _below(hashes: np.ndarray, share: float, allowed: float, eligible: np.ndarray) -> np.ndarray:
    """Mask of eligible hashes below the share, lowered until at most ``allowed`` remain."""
    masks = (eligible & (hashes < share * step / 10) for step in range(10, -1, -1))
    return next(mask for mask in masks if mask.sum() <= allowed)


def _period_cut(
    first_airings: np.ndarray, last_start: int, allowed: float, shortest_days: float
) -> tuple[int | None, str]:
    if len(first_airings) == 0:
        return None, "the guide holds no titles"
    start = int(first_airings.min())
    span = last_start - start
    if span < shortest_days * DAY:
        return None, f"the guide spans {span / DAY:.1f} days; next_period needs {shortest_days:g} or more"
    cut = start + span * 3 // 4
    late = np.sort(first_airings[first_airings >= cut])
    if len(late) > allowed:  # the shorter tail: the latest first airings, whole instants
        cut = int(late[len(late) - int(allowed) - 1]) + 1
    if not (late >= cut).any():
        return None, "no title airs for the first time in the last quarter of the guide"
    return cut, ""
