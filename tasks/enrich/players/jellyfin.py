"""Jellyfin: see flags.py."""

from typing import Literal

from tasks.enrich.players.flags import CategoryFlags
from tasks.form import configurable


@configurable
class Jellyfin(CategoryFlags):
    """Words of Jellyfin's XMLTV provider (class ListingsProviderInfo of its source)."""

    name: Literal["jellyfin"] = "jellyfin"
