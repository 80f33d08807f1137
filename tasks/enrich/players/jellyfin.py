"""Selects categories for Jellyfin by the rules in flags.py."""

from typing import Literal

from tasks.enrich.players.flags import CategoryFlags
from tasks.form import configurable


@configurable
class Jellyfin(CategoryFlags):
    """Adds the categories that Jellyfin's XMLTV provider recognizes (class ListingsProviderInfo)."""

    name: Literal["jellyfin"] = "jellyfin"
