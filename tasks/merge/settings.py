"""Defines the settings of the merged guide."""

from typing import Literal

from tasks.form import configurable, setting

MAX_DAYS = 36_500  # maximum number of days, because Python's dates end in the year 9999

_PLAYLIST = (
    "Path of an M3U playlist. The merged guide has only the channels of the playlist, with the ids of the "
    "playlist. If empty, it has the channels of all feeds"
)
_SHIFT = "Add the playlist's tvg-shift to times; turn this off for players that add it themselves (Kodi)"
_OVERLAPS = "cut: a programme ends when the next one on the channel begins; keep: times remain as in the feed"
_DAYS_BACK = "Number of days before today in the merged guide, for players that replay past programmes"


@configurable
class MergeSettings:
    """Settings of the channels and days of the merged guide, and of overlapping programmes."""

    playlist: str = setting("", _PLAYLIST)
    shift: bool = setting(True, _SHIFT)
    overlaps: Literal["cut", "keep"] = setting("cut", _OVERLAPS)
    days_back: int = setting(7, _DAYS_BACK, ge=0, le=MAX_DAYS)
    days_forward: int = setting(14, "Number of days after today in the merged guide", ge=0, le=MAX_DAYS)
