"""Selects categories for Jellyfin by the rules in flags.py."""

from typing import Literal

from tasks.enrich.players.flags import CategoryFlags
from tasks.form import configurable


@configurable
class Jellyfin(CategoryFlags):
    """Strategy for Jellyfin with the categories of its XMLTV provider (class ListingsProviderInfo)."""

    name: Literal["jellyfin"] = "jellyfin"
