"""Which titles are held out, decided before anything is counted: by salted hash and by date (design section 6).

Three disjoint held-out sets, together at most 15 % of titles, 5 % each:

* ``unseen_show``: by hash of the first content word, so that franchises stay on one side;
* ``unseen_title``: by hash of the show key;
* ``next_period``: shows whose first airing starts in the last quarter of the data's span, or in the shorter tail of it
  that holds 5 % of the titles. Training sees nothing that first aired after the cut.

A hash does not move when tomorrow's guide comes: a title held out today is held out tomorrow. Where a share would be
passed (one franchise can be large), the hash threshold is lowered in steps of a tenth until it is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tasks.form import FORM

TRAIN, UNSEEN_TITLE, UNSEEN_SHOW, NEXT_PERIOD, PLACEHOLDER = range(5)
SPLITS = ("train", "unseen_title", "unseen_show", "next_period", "placeholder")
DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, kw_only=True)
class SplitSettings:
    """How much is held out, and under which salt."""

    __pydantic_config__ = FORM
    salt: str = field(default="guidespace-1", metadata={"description": "Another salt holds out other titles and starts a new lineage of scores"})
    share: float = field(default=0.05, metadata={"description": "Largest share of titles in each of the three held-out sets", "gt": 0, "le": 0.05})
    shortest_span_days: float = field(default=2.0, metadata={"description": "A guide that spans less has no next_period", "ge": 0})


@dataclass(frozen=True)
class Split:
    """Codes (index into SPLITS) a title, int8; where next_period begins (microseconds since 1970), or why there is none."""

    codes: np.ndarray
    cut: int | None
    reason: str


def split_titles(show_keys: Iterable[str], families: Iterable[str], first_airings: np.ndarray, last_start: int, placeholder: np.ndarray, settings: SplitSettings) -> Split:
    """Assigns every title to training or to one held-out set.

    Args:
        show_keys: One a title, distinct.
        families: First content word of each.
        first_airings: int64 microseconds UTC, shape (titles,).
        last_start: Start of the last airing in the data.
        placeholder: bool, shape (titles,): kept out of training and scoring.
        settings: Salt and shares.
    """
    codes = np.full(len(first_airings), TRAIN, dtype=np.int8)
    allowed = settings.share * max(1, int((~placeholder).sum()))
    by_family = hashes(families, settings.salt + "/family")
    by_show = hashes(show_keys, settings.salt + "/show")
    codes[_below(by_family, settings.share, allowed, ~placeholder)] = UNSEEN_SHOW
    codes[_below(by_show, settings.share, allowed, ~placeholder & (codes == TRAIN))] = UNSEEN_TITLE
    cut, reason = _period_cut(first_airings[~placeholder], last_start, allowed, settings.shortest_span_days)
    if cut is not None:
        codes[(codes == TRAIN) & (first_airings >= cut)] = NEXT_PERIOD
    codes[placeholder] = PLACEHOLDER
    return Split(codes, cut, reason)


def hashes(texts: Iterable[str], salt: str) -> np.ndarray:
    """A number in [0, 1) a text, the same on every machine."""
    key = salt.encode()[:64]
    return np.fromiter((int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=key).digest(), "little") / 2**64 for text in texts), dtype=np.float64)


def _below(hashes: np.ndarray, share: float, allowed: float, eligible: np.ndarray) -> np.ndarray:
    """Mask of eligible hashes below the share, the threshold lowered until at most ``allowed`` titles remain."""
    for step in range(10, 0, -1):
        mask = eligible & (hashes < share * step / 10)
        if mask.sum() <= allowed:
            return mask
    return np.zeros(len(hashes), dtype=bool)


def _period_cut(first_airings: np.ndarray, last_start: int, allowed: float, shortest_days: float) -> tuple[int | None, str]:
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
        late = late[late >= cut]
    if len(late) == 0:
        return None, "no title airs for the first time in the last quarter of the guide"
    return cut, ""
