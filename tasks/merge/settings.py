"""Settings of the merged guide."""

from typing import Literal

from tasks.form import configurable, setting

MAX_DAYS = 36_500  # maximum number of days, because Python's dates end in the year 9999

_PLAYLIST = "M3U file: only its channels are written, under its ids; empty writes the channels of all feeds"
_SHIFT = "Shift programmes by the playlist's tvg-shift; turn off for players that do so themselves (Kodi)"
_OVERLAPS = "cut: a programme ends when the next one on the channel begins; keep: times remain as in the feed"
_DAYS_BACK = "Days before today, for players that record or replay the past"


@configurable
class MergeSettings:
    """Settings of the channels and days of the merged guide, and of overlapping programmes."""

    playlist: str = setting("", _PLAYLIST)
    shift: bool = setting(True, _SHIFT)
    overlaps: Literal["cut", "keep"] = setting("cut", _OVERLAPS)
    days_back: int = setting(7, _DAYS_BACK, ge=0, le=MAX_DAYS)
    days_forward: int = setting(14, "Days after today", ge=0, le=MAX_DAYS)
