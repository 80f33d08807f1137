"""Defines the settings of the recommendations for an evening."""

from typing import Literal

from tasks.form import configurable, setting
from tasks.kinds.kinds import Kind
from tasks.recommend import NearestLikes, Recommender
from tasks.recommend.lists import POOL, TRADE_OFF

PAGES = "tonight"  # folder of the HTML pages in the artifacts of the MLflow run


@configurable
class TonightSettings:
    """Settings that select and rank the programmes of an evening."""

    recommender: Recommender = setting(NearestLikes(), "Strategy that scores titles")
    count: int = setting(10, "Number of programmes on a list", ge=1, le=100)
    pool: int = setting(POOL, "Number of shows with the highest scores from which a list is chosen", ge=1)
    trade_off: float = setting(
        TRADE_OFF, "Weight of likes that the list does not cover yet; 0: only scores count", ge=0
    )
    reasons: int = setting(3, "Maximum number of reasons per programme", ge=0, le=20)
    kinds: tuple[Kind, ...] = setting(
        (), "Kinds of the programmes: film, series, news, sport, children, music, other; empty: all kinds"
    )
    hide_repeats: bool = setting(False, "Hide programmes that were shown before and are not new")
    age: int | None = setting(
        None,
        "Hide programmes with a higher minimum age or an unknown age rating; empty: no limit",
        ge=0,
        le=21,
    )
    hide_unrated: bool = setting(False, "If there is an age limit, hide programmes without an age rating")
    include: tuple[Literal["placeholders", "shopping", "adult"], ...] = setting(
        (), "Programmes to list although they are omitted by default: placeholders, shopping, adult"
    )
    pages: int = setting(10, "Number of viewers whose pages are logged to MLflow as samples", ge=0)


TONIGHT = TonightSettings()
