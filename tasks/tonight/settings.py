"""Settings of the recommendations for an evening."""

from typing import Literal

from tasks.form import configurable, setting
from tasks.kinds.kinds import Kind
from tasks.recommend import NearestLikes, Recommender
from tasks.recommend.lists import POOL, TRADE_OFF

PAGES = "tonight"  # folder of the HTML pages among the artifacts of the MLflow run


@configurable
class TonightSettings:
    """Settings of which programmes of an evening are recommended, and of their ranking."""

    recommender: Recommender = setting(NearestLikes(), "Strategy that scores titles")
    count: int = setting(10, "Programmes on a list", ge=1, le=100)
    pool: int = setting(POOL, "Number of best-scored shows from which a list is chosen", ge=1)
    trade_off: float = setting(TRADE_OFF, "Weight of likes that are not yet covered by the list", ge=0)
    reasons: int = setting(3, "Maximum number of reasons per programme", ge=0, le=20)
    kinds: tuple[Kind, ...] = setting(
        (), "Kinds of the programmes: film, series, news, sport, children, music, other; empty: all of them"
    )
    hide_repeats: bool = setting(False, "Hide programmes that were shown before and are not new")
    age: int | None = setting(
        None,
        "Hide programmes with a higher minimum age or an unknown age rating; empty: no limit",
        ge=0,
        le=21,
    )
    hide_unrated: bool = setting(False, "With a limit of age, hide programmes without an age rating")
    include: tuple[Literal["placeholders", "shopping", "adult"], ...] = setting(
        (), "Kinds of programmes that are otherwise omitted: placeholders, shopping, adult"
    )
    pages: int = setting(10, "Number of viewers whose pages are logged for inspection", ge=0)


TONIGHT = TonightSettings()
