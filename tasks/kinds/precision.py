"""Defines the setting for the minimum precision of predicted kinds."""

from collections.abc import Mapping

from tasks.form import configurable, setting
from tasks.kinds.kinds import KINDS, Kind


@configurable
class KindPrecision:
    """Minimum precision of predictions, for each kind of programme."""

    film: float = setting(0.97, "Films", gt=0, le=1)  # a wrong film breaks recordings of series in Jellyfin
    series: float = setting(0.95, "Series", gt=0, le=1)
    news: float = setting(0.95, "News", gt=0, le=1)
    sport: float = setting(0.95, "Sport", gt=0, le=1)
    children: float = setting(0.95, "Programmes for children", gt=0, le=1)
    music: float = setting(0.95, "Music", gt=0, le=1)
    other: float = setting(0.95, "Other programmes", gt=0, le=1)

    def by_kind(self) -> dict[Kind, float]:
        """Returns the settings as a dictionary by kind."""
        return {kind: getattr(self, kind) for kind in KINDS}


PRECISION: Mapping[Kind, float] = KindPrecision().by_kind()  # default minimum precision by kind
