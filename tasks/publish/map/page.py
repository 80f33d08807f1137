"""The map's page: one self-contained HTML file in which titles are points to search, hover and follow.

tasks/pages has what holds for every page. Arrays in its data are base64 of little-endian typed arrays.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.arrays import Ragged, open_array
from storage.formats.clustering import read_clusters, read_subclusters
from storage.name_lists import NameLists
from tasks.pages import encode_data, render_page
from tasks.publish.map.airing_times import AiringTimes
from tasks.publish.map.places import Places
from tasks.publish.map.reasons import Reasons
from tasks.publish.settings import PublishSettings
from tasks.search.parts import NO_WORDS

HERE = Path(__file__).parent
PARTS = "data colours camera levels points labels search legend filter link card input main"
SCRIPTS = tuple(f"map_{part}.js" for part in PARTS.split())  # in the order in which they need each other
MOST_NEIGHBOURS = 10
MOST_TIMES = 24  # of one title, the latest: a daily programme's of three weeks
SHOWN = ["title", "labels", "channels", "airings", "language", "days"]


@dataclass(frozen=True, kw_only=True)
class MapContent:
    """What the map shows. Row i of every array and list is title i; shapes and ranges are checked."""

    heading: str  # the page's name: "TV guide of 7 June 2025"
    titles: Sequence[str]
    xy: np.ndarray  # float32, (titles, 2), within [-1, 1]; y points up
    categories: Sequence[Sequence[str]]  # all labels of a title, possibly none
    channels: Sequence[Sequence[str]]  # display names, most airings first
    airings: Sequence[int]  # gives the point its size
    clusters: np.ndarray  # index into cluster_names, -1 is noise
    cluster_names: Sequence[str]
    neighbours: np.ndarray  # (titles, k), k at most 10, nearest first; -1 where there is none
    cosines: np.ndarray  # (titles, k)
    facts: Mapping[str, str] = field(default_factory=dict)  # label to text, for the header, in this order
    held_out: np.ndarray | None = None  # bool: titles not in training
    languages: Sequence[str | None] = ()  # codes; empty: no filter by language
    days: Sequence[Sequence[str]] = ()  # on which a title airs, as text that sorts; empty: no filter by day
    reasons: Reasons | None = None  # why neighbours are near
    fresh: np.ndarray | None = None  # bool: titles that the previous map did not have
    cluster_colours: Sequence[int] | None = None  # the same from run to run; None colours by size
    cluster_categories: Sequence[str | None] = ()  # the category that each cluster is named after
    subclusters: np.ndarray | None = None  # index into subcluster_names, -1 is none
    subcluster_names: Sequence[str] = ()
    subcluster_parents: Sequence[int] = ()  # the cluster of each
    times: AiringTimes | Sequence[Sequence[tuple[int, str]]] = ()  # the latest MOST_TIMES
    descriptions: Sequence[str] = ()  # the beginning of each title's; "" or no rows at all: none is shown

    def __post_init__(self) -> None:
        titles, clusters = len(self.titles), len(self.cluster_names)
        for names, rows, unit, empty in (
            ("xy categories channels airings clusters neighbours cosines", titles, "titles", False),
            ("held_out fresh languages days times subclusters descriptions", titles, "titles", True),
            ("cluster_colours cluster_categories", clusters, "clusters", True),
            ("subcluster_parents", len(self.subcluster_names), "subclusters", False),
        ):
            for name in names.split():
                value = getattr(self, name)
                given = 0 if value is None else len(value)
                if given != rows and (given or not empty):
                    wanted = f"give one row for each{' or none at all' if empty else ''}"
                    raise ValueError(f"{name} has {given} rows for {rows} {unit}; {wanted}")
        shapes = self.neighbours.shape, self.cosines.shape
        if self.neighbours.ndim != 2 or shapes[0] != shapes[1] or shapes[0][1] > MOST_NEIGHBOURS:
            wanted = f"must both be (titles, k), k at most {MOST_NEIGHBOURS}"
            raise ValueError(f"neighbours {shapes[0]} and cosines {shapes[1]} {wanted}")
        if self.xy.shape != (titles, 2):
            raise ValueError(f"xy has shape {self.xy.shape}, expected ({titles}, 2)")
        bounds = {"xy": (-1.0, 1.0), "cosines": (-1.0, 1.0), "airings": (0, 2**32 - 1)}
        bounds |= {"clusters": (-1, clusters - 1), "neighbours": (-1, titles - 1)}
        if self.subclusters is not None:
            bounds |= {"subclusters": (-1, len(self.subcluster_names) - 1)}
            bounds |= {"subcluster_parents": (0, clusters - 1)}
        for name, (low, high) in bounds.items():
            values = np.asarray(getattr(self, name))
            slack = 1e-4 if isinstance(low, float) else 0  # float32 rounding
            wrong = ~((values >= low - slack) & (values <= high + slack))  # NaN too
            if wrong.any():
                expected = f"expected {low} to {high}; {int(wrong.sum())} such values"
                raise ValueError(f"{name} holds {values[wrong].flat[0]!r}, {expected}")


def facts_of(titles: pa.Table, scores: Mapping[str, Any]) -> dict[str, str]:
    """Label to text for the map's header."""
    first = pc.min(titles["first_airing"]).as_py()  # pyright: ignore[reportAttributeAccessIssue]
    shown = sum(split != "placeholder" for split in titles["split"].to_pylist())
    facts = {"Titles": f"{shown:,}", "Guide from": f"{first:%-d %B %Y}" if first else "–"}
    score = scores["protocols"]["unseen_title"]["title_only"]
    if score["n"]:
        facts["Right category for unseen titles"] = f"{score['knn']['accuracy']:.0%}"
        facts["Like-minded neighbours"] = f"{score['knn']['precision_at_k']:.0%}"
    return facts


def map_content(
    titles: pa.Table,
    places: Places,
    clustering: Path,
    facts: Mapping[str, str],
    settings: PublishSettings,
    times: pa.Table,
    descriptions: Sequence[str] = (),
) -> MapContent:
    """The map's content.

    ``times`` has a row a title of the corpus: minutes and names; ``descriptions`` has a text a title or none
    at all.
    """
    shown = places.shown
    split = np.array(titles["split"].to_pylist())
    columns = titles.select(SHOWN).take(pa.array(shown))
    clusters, (parts, subclusters) = read_clusters(clustering), read_subclusters(clustering)
    return MapContent(
        heading=settings.heading,
        facts=facts,
        titles=columns["title"].to_pylist(),
        xy=places.xy,
        categories=NameLists.from_column(columns["labels"]),
        channels=NameLists.from_column(columns["channels"]),
        airings=columns["airings"].to_numpy(),
        clusters=np.asarray(open_array(clustering, "clusters"))[shown],
        cluster_names=[cluster["name"] for cluster in clusters],
        cluster_categories=[cluster["label"] for cluster in clusters],
        subclusters=np.asarray(parts)[shown],
        subcluster_names=[part["name"] for part in subclusters],
        subcluster_parents=[part["parent"] for part in subclusters],
        neighbours=places.neighbours,
        cosines=places.cosines.clip(-1, 1),
        held_out=split[shown] != "train",
        languages=columns["language"].to_pylist(),
        days=NameLists.from_column(columns["days"]),
        times=AiringTimes.of(times.select(["minutes", "names"]).take(pa.array(shown))),
        descriptions=[descriptions[int(title)] for title in shown] if descriptions else (),
        reasons=places.reasons,
        fresh=places.fresh,
        cluster_colours=[cluster["colour"] for cluster in clusters],
    )


def render_map(content: MapContent) -> str:
    """Renders the page, to be written as UTF-8; no titles at all give a page that says so."""
    scripts = [HERE / name for name in SCRIPTS]
    return render_page(HERE / "map.html", content.heading, HERE / "map.css", encode_content(content), scripts)


def encode_content(content: MapContent) -> str:
    """The content as JSON that is safe inside a script element (form: map_data.js reads it)."""
    titles, nothing = len(content.titles), [()] * len(content.titles)
    languages = [(name,) if name else () for name in content.languages] or nothing
    indexed: dict[str, Any] = _index("category", "categories", content.categories)
    indexed |= _index("channel", "channels", content.channels) | _index("language", "languages", languages)
    indexed |= _index("day", "days", content.days if len(content.days) else nothing)
    place_of_category = {name: place for place, name in enumerate(indexed["categoryNames"])}
    data = {
        "heading": content.heading,
        "facts": [[label, text] for label, text in content.facts.items()],
        "titles": list(content.titles),
        "xy": _pack(content.xy, "<f4"),
        "airings": _pack(content.airings, "<u4"),
        "clusterNames": list(content.cluster_names),
        "clusters": _pack(content.clusters, "<i4"),
        "clusterCategories": [place_of_category.get(name or "", -1) for name in content.cluster_categories],
        "subclusters": None if content.subclusters is None else _pack(content.subclusters, "<i4"),
        "subclusterNames": list(content.subcluster_names),
        "subclusterParents": list(content.subcluster_parents),
        **indexed,
        "times": _pack_times(content.times if len(content.times) else nothing),
        "reasons": content.reasons and _pack_reasons(content.reasons),
        "fresh": None if content.fresh is None else _pack(content.fresh, "<u1"),
        "clusterColours": content.cluster_colours and list(content.cluster_colours),
        "neighbourCount": int(content.neighbours.shape[1]),
        # 0 is "none", so indices travel plus one; two bytes do up to 65,534 titles
        "neighbours": _pack(content.neighbours.astype(np.int64) + 1, "<u2" if titles < 65_535 else "<u4"),
        "cosines": _pack(np.rint(content.cosines * 100), "<i1"),  # the card shows two decimals
        "descriptions": list(content.descriptions),
        "heldOut": None if content.held_out is None else _pack(content.held_out, "<u1"),
    }
    return encode_data(data)


def _pack(values: np.ndarray | Sequence[int], dtype: str) -> dict[str, str]:
    flat = np.ascontiguousarray(values, dtype=dtype)
    return {"type": dtype[1:], "base64": base64.b64encode(flat.tobytes()).decode()}


def _index(one: str, many: str, rows: Sequence[Sequence[str]]) -> dict[str, object]:
    """Distinct names in order of first appearance, and the rows as indices into them without repeats."""
    lists = (rows if isinstance(rows, NameLists) else NameLists.from_rows(rows)).distinct()
    return {f"{one}Names": lists.names, many: _pack_rows(lists.rows)}


def _pack_reasons(reasons: Reasons) -> dict[str, object]:
    _, neighbours, pairs = reasons.left.shape
    left, right = _pack(reasons.left, "<u1"), _pack(reasons.right, "<u1")
    shares = {"left": left, "right": right, "share": _pack(reasons.share, "<i1")}
    words = _index("word", "words", reasons.words)
    return {"neighbours": neighbours, "pairs": pairs, "partNames": NO_WORDS, **words, **shares}


def _pack_times(times: AiringTimes | Sequence[Sequence[tuple[int, str]]]) -> dict[str, object]:
    aired = times if isinstance(times, AiringTimes) else AiringTimes.from_rows(times)
    minutes, channels = aired.minutes, aired.channels
    since = int(minutes.values.min()) if len(minutes.values) else 0
    passed = _pack_rows(Ragged(minutes.offsets, minutes.values - since))
    about = {"most": MOST_TIMES, "since": since, "minutes": passed}
    return {**about, "channelNames": channels.names, "channels": _pack_rows(channels.rows)}


def _pack_rows(rows: Ragged) -> dict[str, dict[str, str]]:
    """Rows of different lengths as their lengths and their values end to end, each in the narrowest type."""
    columns = {"lengths": rows.lengths, "values": rows.values}
    types = {name: np.min_scalar_type(int(own.max(initial=0))).str[1:] for name, own in columns.items()}
    return {name: _pack(values, "<" + types[name]) for name, values in columns.items()}
