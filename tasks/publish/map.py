"""The map: one self-contained HTML file in which a guide's titles are points that can be searched, hovered and followed.

The page is written by hand (map.html, map.css, map_*.js) and carries its data, so it opens from disk without a network
and inside MLflow's artifact view, a sandboxed frame: no storage, no fonts, no libraries, and a content security policy
in the page that forbids every request. The data are one JSON text; arrays travel in it as base64 of little-endian
typed arrays in the narrowest type that holds them, 10,000 titles with ten neighbours each in about 1 MB.

JSON inside HTML: ``<``, ``>`` and ``&`` are written as six-letter escapes, so that no title can end the script element or open
a comment; U+2028 and U+2029 too, for readers that take the text for JavaScript. Half surrogates, which UTF-8 cannot
hold, become U+FFFD.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.publish.reasons import Reasons

HERE = Path(__file__).parent
STYLE = "map.css"
SCRIPTS = (
    "map_data.js", "map_colours.js", "map_camera.js", "map_points.js", "map_labels.js", "map_search.js",
    "map_legend.js", "map_filter.js", "map_link.js", "map_card.js", "map_input.js", "map_main.js",
)  # fmt: skip
MOST_NEIGHBOURS = 10
MOST_TIMES = 24  # of one title, the latest: a daily programme's of three weeks
ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


@dataclass(frozen=True, kw_only=True)
class MapContent:
    """What the map shows. Row i of every array and list is title i.

    Attributes:
        heading: The page's name: "TV guide of 7 June 2025".
        facts: Label to text, for the header, in this order: feeds, date, scores in words.
        titles: Display texts.
        xy: float32, shape (titles, 2), within [-1, 1]; y points up.
        categories: All labels of a title, possibly none.
        channels: Display names of the channels, most airings first.
        airings: How often a title is aired; gives the point its size.
        clusters: Integers, shape (titles,); an index into ``cluster_names``, -1 is noise.
        cluster_names: One name a cluster.
        neighbours: Integers, shape (titles, k), k at most 10, nearest first; -1 where there is none.
        cosines: Floats, shape (titles, k).
        held_out: Bools, shape (titles,): titles that training did not see; None shows none.
        languages: Language code of each title, None where it has none; empty: no filter by language.
        days: Days on which each title airs, as text that sorts; empty: no filter by day.
        reasons: Why neighbours are near, a row a title; None tells nothing.
        fresh: Bools, shape (titles,): titles that the map before did not have; None shows none.
        cluster_colours: A small number a cluster, the same from night to night; None colours by size.
        times: When each title airs, as (minute since 1970 in UTC, channel), rising: the latest MOST_TIMES; empty: not
            told.
        cluster_categories: The category that each cluster is named after, None where it has none; empty: none at all.

    Raises:
        ValueError: Shapes do not agree or a number is out of its range.
    """

    heading: str
    titles: Sequence[str]
    xy: np.ndarray
    categories: Sequence[Sequence[str]]
    channels: Sequence[Sequence[str]]
    airings: Sequence[int]
    clusters: np.ndarray
    cluster_names: Sequence[str]
    neighbours: np.ndarray
    cosines: np.ndarray
    facts: Mapping[str, str] = field(default_factory=dict)
    held_out: np.ndarray | None = None
    languages: Sequence[str | None] = ()
    days: Sequence[Sequence[str]] = ()
    reasons: Reasons | None = None
    fresh: np.ndarray | None = None
    cluster_colours: Sequence[int] | None = None
    cluster_categories: Sequence[str | None] = ()
    times: Sequence[Sequence[tuple[int, str]]] = ()

    def __post_init__(self) -> None:
        titles = len(self.titles)
        for name in ("xy", "categories", "channels", "airings", "clusters", "neighbours", "cosines"):
            if len(getattr(self, name)) != titles:
                raise ValueError(f"{name} has {len(getattr(self, name))} rows for {titles} titles; give one row a title")
        if self.held_out is not None and len(self.held_out) != titles:
            raise ValueError(f"held_out has {len(self.held_out)} rows for {titles} titles; give one row a title, or None")
        for name in ("languages", "days", "times", "fresh"):
            value = getattr(self, name)
            if value is not None and len(value) not in ((titles,) if name == "fresh" else (0, titles)):
                raise ValueError(f"{name} has {len(value)} rows for {titles} titles; give one row a title, or none")
        if self.cluster_colours is not None and len(self.cluster_colours) != len(self.cluster_names):
            raise ValueError(f"{len(self.cluster_colours)} colours for {len(self.cluster_names)} clusters; give one a cluster, or None")
        if len(self.cluster_categories) not in (0, len(self.cluster_names)):
            told = f"{len(self.cluster_categories)} categories for {len(self.cluster_names)} clusters"
            raise ValueError(f"{told}; give one a cluster, or none at all")
        if self.neighbours.ndim != 2 or self.neighbours.shape != self.cosines.shape or self.neighbours.shape[1] > MOST_NEIGHBOURS:
            raise ValueError(f"neighbours {self.neighbours.shape} and cosines {self.cosines.shape} must both be (titles, k), k at most {MOST_NEIGHBOURS}")
        if self.xy.shape != (titles, 2):
            raise ValueError(f"xy has shape {self.xy.shape}, expected ({titles}, 2)")
        _check_range("xy", self.xy, -1.0, 1.0)
        _check_range("cosines", self.cosines, -1.0, 1.0)
        _check_range("airings", np.asarray(self.airings), 0, 2**32 - 1)
        _check_range("clusters", self.clusters, -1, len(self.cluster_names) - 1)
        _check_range("neighbours", self.neighbours, -1, titles - 1)


def _check_range(name: str, values: np.ndarray, low: float, high: float) -> None:
    """Refuses NaN and what lies outside; float32 rounding (1e-4) is let through."""
    slack = 1e-4 if np.issubdtype(values.dtype, np.floating) else 0
    wrong = ~((values >= low - slack) & (values <= high + slack))
    if wrong.any():
        raise ValueError(f"{name} holds {values[wrong].flat[0]!r}, expected {low} to {high}; {int(wrong.sum())} such values")


def render_map(content: MapContent) -> str:
    """Renders the page.

    Args:
        content: What it shows; no titles at all is allowed and gives a page that says so.

    Returns:
        One HTML file, to be written as UTF-8.
    """
    parts = {
        "heading": html.escape(_clean(content.heading)),
        "style": (HERE / STYLE).read_text(encoding="utf-8"),
        "data": encode_content(content),
        "script": "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS),
    }
    template = (HERE / "map.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], template)  # one pass: a title that holds a mark stays text


def encode_content(content: MapContent) -> str:
    """The content as JSON that is safe inside a script element (form: map_data.js reads it)."""
    titles = len(content.titles)
    category_names, categories = _index(content.categories)
    channel_names, channels = _index(content.channels)
    language_names, languages = _index([[name] if name else [] for name in content.languages] or [[]] * titles)
    day_names, days = _index(content.days or [[]] * titles)
    place_of_category = {name: place for place, name in enumerate(category_names)}
    data = {
        "heading": content.heading,
        "facts": [[label, text] for label, text in content.facts.items()],
        "titles": list(content.titles),
        "xy": _pack(content.xy, "<f4"),
        "airings": _pack(content.airings, "<u4"),
        "clusterNames": list(content.cluster_names),
        "clusters": _pack(content.clusters, "<i4"),
        "clusterCategories": [place_of_category.get(name or "", -1) for name in content.cluster_categories],
        "categoryNames": category_names,
        "categories": _pack_rows(categories),
        "channelNames": channel_names,
        "languageNames": language_names,
        "languages": _pack_rows(languages),
        "dayNames": day_names,
        "days": _pack_rows(days),
        "times": _pack_times(content.times or [[]] * titles),
        "reasons": None if content.reasons is None else _pack_reasons(content.reasons),
        "fresh": None if content.fresh is None else _pack(content.fresh, "<u1"),
        "clusterColours": None if content.cluster_colours is None else list(content.cluster_colours),
        "channels": _pack_rows(channels),
        "neighbourCount": int(content.neighbours.shape[1]),
        # 0 is "none", so indices travel plus one; two bytes do up to 65,534 titles.
        "neighbours": _pack(np.asarray(content.neighbours, dtype=np.int64) + 1, "<u2" if titles < 65_535 else "<u4"),
        "cosines": _pack(np.rint(np.asarray(content.cosines) * 100), "<i1"),  # the card shows two decimals
        "heldOut": None if content.held_out is None else _pack(content.held_out, "<u1"),
    }
    return _clean(json.dumps(data, ensure_ascii=False, separators=(",", ":"))).translate(ESCAPES)


def _clean(text: str) -> str:
    """Text that UTF-8 can hold: half surrogates become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _pack(values: np.ndarray | Sequence[int], dtype: str) -> dict[str, str]:
    """An array, flat, as ``{"type", "base64"}``."""
    flat = np.ascontiguousarray(np.asarray(values), dtype=dtype)
    return {"type": dtype[1:], "base64": base64.b64encode(flat.tobytes()).decode("ascii")}


def _index(rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """Distinct names in order of first appearance, and the rows as indices into them, repeats within a row dropped."""
    index: dict[str, int] = {}
    indexed = [[index.setdefault(name, len(index)) for name in dict.fromkeys(row)] for row in rows]
    return list(index), indexed


def _pack_reasons(reasons: Reasons) -> dict[str, object]:
    """Words of each title, and (part, part, hundredths) of each told pair of each explained neighbour."""
    names, words = _index(reasons.words)
    return {
        "neighbours": int(reasons.left.shape[1]),
        "pairs": int(reasons.left.shape[2]),
        "wordNames": names,
        "words": _pack_rows(words),
        "left": _pack(reasons.left, "<u1"),
        "right": _pack(reasons.right, "<u1"),
        "share": _pack(reasons.share, "<i1"),
    }


def _pack_times(times: Sequence[Sequence[tuple[int, str]]]) -> dict[str, object]:
    """Minutes of each title since the earliest, and the channel of each."""
    since = min((minute for row in times for minute, _ in row), default=0)
    index: dict[str, int] = {}
    channels = [[index.setdefault(channel, len(index)) for _, channel in row] for row in times]
    minutes = [[minute - since for minute, _ in row] for row in times]
    return {
        "most": MOST_TIMES,
        "since": since,
        "minutes": _pack_rows(minutes),
        "channelNames": list(index),
        "channels": _pack_rows(channels),
    }


def _pack_rows(rows: list[list[int]]) -> dict[str, dict[str, str]]:
    """Rows of different lengths as their lengths and their values end to end."""
    values = [value for row in rows for value in row]
    return {"lengths": _pack_narrow([len(row) for row in rows]), "values": _pack_narrow(values)}


def _pack_narrow(values: list[int]) -> dict[str, str]:
    """Whole numbers from 0 on in the narrowest type that holds them."""
    most = max(values, default=0)
    return _pack(values, "<u1" if most < 1 << 8 else "<u2" if most < 1 << 16 else "<u4")
