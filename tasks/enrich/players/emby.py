"""Selects categories for Emby by the rules in flags.py.

References:
    Emby wiki, Xml Tv: categories indicate types of programmes, and are configured in Emby.
    https://github.com/MediaBrowser/Wiki/wiki/Xml-Tv
    Emby 3, the last version whose source is public, has the lists and the rules of Jellyfin.
    https://github.com/MediaBrowser/Emby, ListingsProviderInfo and XmlTvListingsProvider
"""

from typing import Literal

from tasks.enrich.players.flags import CategoryFlags
from tasks.form import configurable


@configurable
class Emby(CategoryFlags):
    """Strategy for Emby with the categories of its XMLTV provider."""

    name: Literal["emby"] = "emby"
