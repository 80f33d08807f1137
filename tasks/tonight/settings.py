"""Settings of the lists."""

from tasks.form import configurable, setting
from tasks.recommend import NearestLikes, Recommender
from tasks.recommend.lists import POOL, TRADE_OFF

PAGES = "tonight"  # folder of an MLflow run that holds the pages


@configurable
class TonightSettings:
    """How an evening's programmes are ranked for a viewer."""

    recommender: Recommender = setting(NearestLikes(), "Strategy that scores titles")
    count: int = setting(10, "Programmes on a list", ge=1, le=100)
    pool: int = setting(POOL, "Shows of best score that a list is chosen from", ge=1)
    trade_off: float = setting(TRADE_OFF, "Weight of likes that the list has no programme for yet", ge=0)
    reasons: int = setting(3, "Liked titles named with each programme", ge=0, le=20)
    pages: int = setting(10, "Viewers whose pages are logged for a person to read", ge=0)


TONIGHT = TonightSettings()
