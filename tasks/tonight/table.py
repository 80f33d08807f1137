"""Converts lists of recommendations to an Arrow table with the schema in storage/formats/tonight.py."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from storage.formats.tonight import RECOMMENDATIONS
from tasks.tonight.choose import Recommendation


def to_table(lists: Iterable[Iterable[Recommendation]]) -> pa.Table:
    """Returns a table with one row per recommendation; ``lists`` are the lists of several viewers."""
    return pa.Table.from_pylist(
        [_to_row(recommendation) for recommendations in lists for recommendation in recommendations],
        schema=RECOMMENDATIONS,
    )


def _to_row(recommendation: Recommendation) -> dict[str, Any]:
    """Returns the values of a row. ``pa.Table.from_pylist`` ignores the fields that are not in the schema."""
    programme = recommendation.programme
    return {
        **vars(programme),
        "viewer": recommendation.viewer,
        "rank": recommendation.rank,
        "score": recommendation.score,
        "start": programme.start.replace(tzinfo=None),
        "stop": programme.stop and programme.stop.replace(tzinfo=None),
        "also": [
            {"start": airing.start.replace(tzinfo=None), "channel": airing.channel}
            for airing in programme.also
        ],
        "why": [asdict(reason) for reason in recommendation.why],
    }
