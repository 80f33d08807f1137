"""Settings of the merged guide."""

from typing import Literal

from tasks.form import configurable, setting

_PLAYLIST = "M3U file: only its channels are written, under its ids; empty writes the channels of all feeds"
_SHIFT = "Shift programmes by the playlist's tvg-shift; turn off for players that do so themselves (Kodi)"
_OVERLAPS = "cut: a programme ends when the next one on the channel begins; keep: times remain as in the feed"


@configurable
class MergeSettings:
    """Selects channels, days and the treatment of overlaps."""

    playlist: str = setting("", _PLAYLIST)
    shift: bool = setting(True, _SHIFT)
    overlaps: Literal["cut", "keep"] = setting("cut", _OVERLAPS)
    days_back: int = setting(7, "Days before today, for players that record or replay the past", ge=0)
    days_forward: int = setting(14, "Days after today", ge=0)
