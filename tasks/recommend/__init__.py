"""Recommends titles: computes scores, reasons and lists of titles from the likes of viewers.

The method ``fit(likes, titles)`` of a recommender takes Likes and Titles and returns a FittedRecommender
(tasks/recommend/lists.py). ``scores`` computes finite scores of titles; higher is better. ``shares`` and
``reasons_for`` return the rated titles that determine a score. ``with_likes`` replaces the likes of a viewer.
tests/contracts/test_recommenders.py checks that the order of likes has no effect, and that a viewer without
likes gets popular titles.
"""

from typing import get_args

from tasks.recommend.factorised_likes import FactorisedLikes
from tasks.recommend.likes import Likes, Reason, Titles
from tasks.recommend.lists import Counterfactual, best_titles, diversify, find_counterfactual
from tasks.recommend.nearest_likes import NearestLikes
from tasks.recommend.popularity import Popularity

__all__ = [
    "RECOMMENDERS", "Counterfactual", "FactorisedLikes", "Likes", "NearestLikes",
    "Popularity", "Reason", "Recommender", "Titles", "best_titles", "diversify", "find_counterfactual",
]  # fmt: skip

Recommender = FactorisedLikes | NearestLikes | Popularity
RECOMMENDERS: dict[str, Recommender] = {kind().name: kind() for kind in get_args(Recommender)}
