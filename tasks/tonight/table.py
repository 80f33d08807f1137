"""Lists as a table: storage/formats/tonight.py."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from storage.formats.tonight import TONIGHT
from tasks.tonight.choose import Recommendation


def to_table(lists: Iterable[Iterable[Recommendation]]) -> pa.Table:
    """One row a viewer and programme, in the order of the lists."""
    return pa.Table.from_pylist([_row(one) for found in lists for one in found], schema=TONIGHT)


def _row(one: Recommendation) -> dict[str, Any]:
    programme = one.programme
    return {
        "viewer": one.viewer,
        "rank": one.rank,
        "score": one.score,
        "start": programme.start.replace(tzinfo=None),
        "stop": programme.stop and programme.stop.replace(tzinfo=None),
        "channel": programme.channel,
        "title": programme.title,
        "sub_title": programme.sub_title,
        "episode": programme.episode,
        "categories": programme.categories,
        "also": [
            {"start": each.start.replace(tzinfo=None), "channel": each.channel} for each in programme.also
        ],
        "why": [{"title": why.title, "share": why.share, "liked": why.liked} for why in one.why],
    }
