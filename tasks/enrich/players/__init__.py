"""Strategies for players and recorders: the categories, elements and files that a player needs in a guide."""

from typing import get_args

from tasks.enrich.players.emby import Emby
from tasks.enrich.players.jellyfin import Jellyfin
from tasks.enrich.players.kodi import Kodi
from tasks.enrich.players.tvheadend import Tvheadend

Player = Emby | Jellyfin | Kodi | Tvheadend
PLAYERS: dict[str, type[Player]] = {player().name: player for player in get_args(Player)}
