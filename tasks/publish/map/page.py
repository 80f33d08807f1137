"""Renders the map: one self-contained HTML file in which titles are points.

The page is built by tasks/pages.py. Arrays in its data are base64 of little-endian JavaScript typed arrays.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from tasks.publish.map.places import MapTitles
from tasks.publish.map.reasons import Reasons
from tasks.publish.settings import PublishSettings
from tasks.search.parts import NON_WORD_PARTS

FOLDER = Path(__file__).parent
SCRIPT_NAMES = "data colours camera levels points labels search legend filter link card input main"
SCRIPTS = tuple(f"map_{name}.js" for name in SCRIPT_NAMES.split())  # each depends only on earlier scripts
MAX_TIMES = 24  # maximum number of airings of a title on the page (the latest): three weeks, if daily
COLUMNS = ["title", "labels", "channels", "airings", "language", "days"]  # columns of titles.parquet


@dataclass(frozen=True, kw_only=True)
class MapContent:
    """Content of the map page. Row i of arrays and lists with a row per title belongs to title i."""

    heading: str
    facts: Mapping[str, str]  # figures in the page header, from label to text
    titles: Sequence[str]
    xy: np.ndarray  # float32, (titles, 2), within [-1, 1]; y points up
    categories: Sequence[Sequence[str]]
    channels: Sequence[Sequence[str]]  # display names of the channels of each title, most airings first
    airings: Sequence[int] | np.ndarray  # numbers of airings, which determine the sizes of points
    languages: Sequence[str | None]  # language codes
    days: Sequence[Sequence[str]]  # days on which each title airs, YYYY-MM-DD
    times: AiringTimes  # latest MAX_TIMES airings of each title
    kinds: Sequence[Sequence[str]] = ()  # kinds of programme (film, series …); () for a map without kinds
    descriptions: Sequence[str] = ()  # excerpts of descriptions; () for a map without descriptions
    held_out: np.ndarray  # bool: whether a title is outside the training set
    is_new: np.ndarray | None = None  # bool: not on the previous map; None without a previous map
    clusters: np.ndarray  # index in cluster_names of each title, -1 is noise
    cluster_names: Sequence[str]
    cluster_categories: Sequence[str | None]  # category after which each cluster is named
    cluster_colours: Sequence[int]  # index of each cluster in the palette, stable from run to run
    subclusters: np.ndarray  # index in subcluster_names of each title, -1 is none
    subcluster_names: Sequence[str]
    subcluster_parents: Sequence[int]  # cluster of each subcluster
    neighbours: np.ndarray  # (titles, k), indices of nearest titles, nearest first, padded with -1
    cosines: np.ndarray  # (titles, k), cosine similarities of ``neighbours``
    reasons: Reasons | None = None  # why neighbours are similar; None for a large map

    def __post_init__(self) -> None:
        title_count, clusters = len(self.titles), len(self.cluster_names)
        for names, rows in (
            (
                "xy categories channels airings languages days times held_out clusters subclusters",
                title_count,
            ),
            ("neighbours cosines", title_count),
            ("cluster_categories cluster_colours", clusters),
            ("subcluster_parents", len(self.subcluster_names)),
        ):
            for name in names.split():
                if (length := len(getattr(self, name))) != rows:
                    raise ValueError(f"{name} has {length} rows, expected {rows}")
        for name, low, high in (
            ("xy", -1.0, 1.0),
            ("cosines", -1.0, 1.0),
            ("clusters", -1, clusters - 1),
            ("neighbours", -1, title_count - 1),
        ):
            values = np.asarray(getattr(self, name))
            is_inside = (values >= low - 1e-4) & (values <= high + 1e-4)  # false for NaN; tolerates rounding
            if not is_inside.all():
                raise ValueError(f"{name} contains {values[~is_inside].flat[0]!r}, expected {low} to {high}")


def make_facts(titles: pa.Table, scores: Mapping[str, Any]) -> dict[str, str]:
    """Returns the figures in the header of the map page, from label to text.

    Args:
        titles: Table of titles with the columns "first_airing" and "split".
        scores: Content of scores.json.
    """
    first_airing = pc.min(titles["first_airing"]).as_py()  # pyright: ignore[reportAttributeAccessIssue]
    title_count = sum(name != "placeholder" for name in titles["split"].to_pylist())
    facts = {"Titles": f"{title_count:,}", "Guide from": f"{first_airing:%-d %B %Y}" if first_airing else "–"}
    score = scores["protocols"]["unseen_title"]["title_only"]
    if score["n"]:
        facts["Correct category of unseen titles"] = f"{score['knn']['accuracy']:.0%}"
        facts["Neighbours sharing a category"] = f"{score['knn']['precision_at_k']:.0%}"
    return facts


def make_content(
    titles: pa.Table,
    map_titles: MapTitles,
    *,
    clustering: Path,
    facts: Mapping[str, str],
    settings: PublishSettings,
    times: pa.Table,
    descriptions: Sequence[str] = (),
) -> MapContent:
    """Collects the content of the map page for the titles on the map.

    Args:
        titles: Table of all titles of the corpus with COLUMNS, split and programme_kinds.
        map_titles: Positions and neighbours of the titles on the map.
        clustering: Clustering folder.
        facts: Figures in the page header, from label to text.
        settings: Settings of the stage publish.
        times: Airings of each title of the corpus: list columns "minutes" and "names" (of channels).
        descriptions: Excerpt of the description of each title; () for a map without descriptions.
    """
    rows = map_titles.corpus_rows
    splits = np.array(titles["split"].to_pylist())
    columns = titles.select(COLUMNS).take(pa.array(rows))
    clusters, (subcluster_of, subclusters) = read_clusters(clustering), read_subclusters(clustering)
    return MapContent(
        heading=settings.heading,
        facts=facts,
        titles=columns["title"].to_pylist(),
        xy=map_titles.xy,
        categories=NameLists.from_column(columns["labels"]),
        channels=NameLists.from_column(columns["channels"]),
        airings=columns["airings"].to_numpy(),
        clusters=np.asarray(open_array(clustering, "clusters"))[rows],
        cluster_names=[cluster["name"] for cluster in clusters],
        cluster_categories=[cluster["label"] for cluster in clusters],
        subclusters=np.asarray(subcluster_of)[rows],
        subcluster_names=[subcluster["name"] for subcluster in subclusters],
        subcluster_parents=[subcluster["parent"] for subcluster in subclusters],
        neighbours=map_titles.neighbours,
        cosines=map_titles.cosines.clip(-1, 1),
        held_out=splits[rows] != "train",
        languages=columns["language"].to_pylist(),
        days=NameLists.from_column(columns["days"]),
        kinds=NameLists.from_column(titles["programme_kinds"].take(pa.array(rows))),
        times=AiringTimes.from_table(times.select(["minutes", "names"]).take(pa.array(rows))),
        descriptions=[descriptions[int(title)] for title in rows] if descriptions else (),
        reasons=map_titles.reasons,
        is_new=map_titles.is_new,
        cluster_colours=[cluster["colour"] for cluster in clusters],
    )


def render_map(content: MapContent) -> str:
    """Returns map.html as text, to be written as UTF-8. A map without titles shows a message."""
    scripts = [FOLDER / name for name in SCRIPTS]
    data = encode_content(content)
    return render_page(FOLDER / "map.html", content.heading, FOLDER / "map.css", data, scripts)


def encode_content(content: MapContent) -> str:
    """Encodes the content of the map as JSON for map_data.js, escaped for an HTML script element."""
    title_count = len(content.titles)
    name_lists: dict[str, Any] = {
        **_pack_name_lists("category", "categories", content.categories),
        **_pack_name_lists("channel", "channels", content.channels),
        **_pack_name_lists("language", "languages", [(name,) if name else () for name in content.languages]),
        **_pack_name_lists("day", "days", content.days),
        **_pack_name_lists("kind", "kinds", content.kinds or [()] * title_count),
    }
    category_index = {name: index for index, name in enumerate(name_lists["categoryNames"])}
    data = {
        "heading": content.heading,
        "facts": [[label, text] for label, text in content.facts.items()],
        "titles": list(content.titles),
        "xy": _pack(content.xy, "<f4"),
        "airings": _pack(content.airings, "<u4"),
        "clusterNames": list(content.cluster_names),
        "clusters": _pack(content.clusters, "<i4"),
        "clusterCategories": [category_index.get(name or "", -1) for name in content.cluster_categories],
        "subclusters": _pack(content.subclusters, "<i4"),
        "subclusterNames": list(content.subcluster_names),
        "subclusterParents": list(content.subcluster_parents),
        **name_lists,
        "times": _pack_times(content.times),
        "reasons": content.reasons and _pack_reasons(content.reasons),
        "fresh": None if content.is_new is None else _pack(content.is_new, "<u1"),
        "clusterColours": list(content.cluster_colours),
        "neighbourCount": int(content.neighbours.shape[1]),
        # index + 1 of each neighbour, 0 for a missing one; two bytes suffice for up to 65,534 titles
        "neighbours": _pack(
            content.neighbours.astype(np.int64) + 1, "<u2" if title_count < 65_535 else "<u4"
        ),
        "cosines": _pack(np.rint(content.cosines * 100), "<i1"),  # the card shows two decimals
        "descriptions": list(content.descriptions),
        "heldOut": _pack(content.held_out, "<u1"),
    }
    return encode_data(data)


def _pack(values: np.ndarray | Sequence[int], dtype: str) -> dict[str, str]:
    """Encodes an array as base64 with its type; ``dtype`` is a NumPy code such as "<f4"."""
    contiguous = np.ascontiguousarray(values, dtype=dtype)
    return {"type": dtype[1:], "base64": base64.b64encode(contiguous.tobytes()).decode()}


def _pack_name_lists(singular: str, plural: str, rows: Sequence[Sequence[str]]) -> dict[str, object]:
    """Packs lists of names, one list per title, under two keys.

    The key ``{singular}Names`` has the distinct names in order of appearance, and the key ``plural`` the
    lists as indices of these names.
    """
    lists = (rows if isinstance(rows, NameLists) else NameLists.from_rows(rows)).distinct()
    return {f"{singular}Names": lists.names, plural: _pack_rows(lists.rows)}


def _pack_reasons(reasons: Reasons) -> dict[str, object]:
    """Packs the reasons why neighbours are similar, with the names of the parts of titles."""
    _, neighbours, pairs = reasons.left.shape
    left, right = _pack(reasons.left, "<u1"), _pack(reasons.right, "<u1")
    shares = {"left": left, "right": right, "share": _pack(reasons.share, "<i1")}
    words = _pack_name_lists("word", "words", reasons.words)
    return {"neighbours": neighbours, "pairs": pairs, "partNames": NON_WORD_PARTS, **words, **shares}


def _pack_times(times: AiringTimes) -> dict[str, object]:
    """Packs the times of airings, as minutes since the first airing of all titles, and the channels."""
    minutes, channels = times.minutes, times.channels
    first_minute = int(minutes.values.min()) if len(minutes.values) else 0
    return {
        "most": MAX_TIMES,
        "since": first_minute,
        "minutes": _pack_rows(Ragged(minutes.offsets, minutes.values - first_minute)),
        "channelNames": channels.names,
        "channels": _pack_rows(channels.rows),
    }


def _pack_rows(rows: Ragged) -> dict[str, dict[str, str]]:
    """Packs rows of different lengths as lengths and concatenated values, both in the narrowest type."""
    arrays = {"lengths": rows.lengths, "values": rows.values}
    types = {name: np.min_scalar_type(int(array.max(initial=0))).str[1:] for name, array in arrays.items()}
    return {name: _pack(array, "<" + types[name]) for name, array in arrays.items()}
