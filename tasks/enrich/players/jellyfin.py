"""Selects categories for Jellyfin by the rules in flags.py."""

from typing import Literal

from tasks.enrich.players.flags import CategoryFlags
from tasks.form import configurable


@configurable
class Jellyfin(CategoryFlags):
    """Strategy for Jellyfin: adds the categories that its XMLTV provider knows (ListingsProviderInfo)."""

    name: Literal["jellyfin"] = "jellyfin"
