"""Selects categories for Emby by the rules in flags.py.

References:
    Emby wiki, Xml Tv: categories indicate types of programmes; which categories do so is a setting of Emby.
    https://github.com/MediaBrowser/Wiki/wiki/Xml-Tv
    Emby 3, the last version with public source code, has the same lists and rules as Jellyfin.
    https://github.com/MediaBrowser/Emby, ListingsProviderInfo and XmlTvListingsProvider
"""

from typing import Literal

from tasks.enrich.players.flags import CategoryFlags
from tasks.form import configurable


@configurable
class Emby(CategoryFlags):
    """Strategy for Emby: adds the categories that its XMLTV provider knows."""

    name: Literal["emby"] = "emby"
