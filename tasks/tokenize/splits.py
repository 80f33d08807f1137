"""Assigns titles to training and held-out sets by salted hash and by date, before tokens are counted.

There are three disjoint held-out sets of about 5 % of the titles each:

- ``unseen_show`` is selected by the hash of the first content word, so that franchises stay together;
- ``unseen_title`` is selected by the hash of the show key;
- ``next_period`` contains the titles that air for the first time in the last quarter of the guide, or in a
  shorter last part if more than 5 % of the titles air for the first time in this quarter.

A title that is held out by its hash remains held out in all later runs, because the threshold of the hash is
fixed. If the threshold depended on the number of titles, a later model could be trained on titles on which
the gate scores it. The size of the sets varies, because all titles of a franchise are held out together.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from storage.digests import hashes
from storage.formats.vocabulary import NEXT_PERIOD, PLACEHOLDER, TRAIN, UNSEEN_SHOW, UNSEEN_TITLE
from tasks.form import configurable, setting

DAY = 86_400_000_000  # microseconds
_SALT_HELP = "Salt of the hashes; another salt holds out other titles and starts a new lineage of scores"


@configurable
class SplitSettings:
    """Size and salt of the held-out sets."""

    salt: str = setting("guidespace-1", _SALT_HELP)
    share: float = setting(0.05, "Expected share of titles in each of the three held-out sets", gt=0, le=0.05)
    shortest_span_days: float = setting(
        2.0, "Minimum time span of a guide in days for a held-out set next_period", ge=0
    )


class EarlierSplit(NamedTuple):
    """Sets of an earlier night whose model is used again; titles that trained it must not be held out."""

    next_period_begin: int | None  # start of next_period in microseconds since 1970; None if there is none
    reason: str  # why the guide has no next_period; empty if it has one
    training: frozenset[str]  # show keys of the training titles of the earlier night


class Split(NamedTuple):
    """Set (training or held-out) of each title, and start of the held-out set next_period."""

    codes: np.ndarray  # int8 (titles,), index into SPLITS
    next_period_begin: int | None  # start of next_period in microseconds since 1970; None if there is none
    reason: str  # why the guide has no next_period; empty if it has one


def split_titles(
    *,
    show_keys: Iterable[str],
    families: Iterable[str],
    first_airings: np.ndarray,
    last_start: int,
    placeholders: np.ndarray,
    settings: SplitSettings,
    earlier: EarlierSplit | None = None,
) -> Split:
    """Assigns each title to training or to one of the held-out sets.

    Args:
        show_keys: Show key of each title.
        families: First content word of each title.
        first_airings: First airing of each title, int64 (titles,), in microseconds since 1970 UTC.
        last_start: Start of the last airing in the guide, in microseconds since 1970 UTC.
        placeholders: bool (titles,), whether a title does not name a programme. Such titles are neither
            trained on nor scored.
        settings: Size and salt of the sets.
        earlier: Sets of an earlier night. next_period then begins at the same instant, and does not contain
            training titles of that night. (The other sets do not depend on the night.)
    """
    keys = list(show_keys)
    codes = np.full(len(first_airings), TRAIN, dtype=np.int8)
    for code, texts, name in ((UNSEEN_SHOW, families, "family"), (UNSEEN_TITLE, keys, "show")):
        is_held_out = hashes(texts, f"{settings.salt}/{name}") < settings.share
        codes[is_held_out & (codes == TRAIN)] = code
    if earlier is None:
        max_titles = settings.share * max(1, int((~placeholders).sum()))
        next_period_begin, reason = _find_period_begin(
            first_airings[~placeholders], last_start, max_titles, settings.shortest_span_days
        )
    else:
        next_period_begin, reason = earlier.next_period_begin, earlier.reason
    if next_period_begin is not None:
        is_late = first_airings >= next_period_begin
        if earlier is not None:
            is_late &= ~np.fromiter((key in earlier.training for key in keys), bool, len(keys))
        codes[(codes == TRAIN) & is_late] = NEXT_PERIOD
    codes[placeholders] = PLACEHOLDER
    return Split(codes, next_period_begin, reason)


def _find_period_begin(
    first_airings: np.ndarray, last_start: int, max_titles: float, shortest_days: float
) -> tuple[int | None, str]:
    """Returns the start of next_period and "", or None and the reason why the guide has no next_period."""
    if len(first_airings) == 0:
        return None, "the guide has no titles"
    start = int(first_airings.min())
    span = last_start - start
    if span < shortest_days * DAY:
        return None, f"the guide spans {span / DAY:.1f} days; next_period needs {shortest_days:g} or more"
    next_period_begin = start + span * 3 // 4
    late_airings = np.sort(first_airings[first_airings >= next_period_begin])
    if len(late_airings) > max_titles:  # begin later; titles with the same first airing stay together
        next_period_begin = int(late_airings[len(late_airings) - int(max_titles) - 1]) + 1
    if not (late_airings >= next_period_begin).any():
        return None, "no title airs for the first time in the last quarter of the guide"
    return next_period_begin, ""
