"""The page's data arrive whole, whatever the titles hold, and the page asks nobody for anything."""

import base64
import dataclasses
import html.parser
import json
import re

import numpy as np
import pytest

from tasks.publish.map.page import HERE, SCRIPTS, MapContent, encode_content, render_map


class Scripts(html.parser.HTMLParser):
    """Collects the script elements as a browser would find them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[dict, str]] = []
        self.open = False

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.open = True
            self.found.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self.open = self.open and tag != "script"

    def handle_data(self, data):
        if self.open:
            attributes, text = self.found[-1]
            self.found[-1] = (attributes, text + data)


def scripts(page: str) -> list[tuple[dict, str]]:
    parser = Scripts()
    parser.feed(page)
    return parser.found


def unpack(packed: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["base64"]), dtype="<" + packed["type"])


def test_data_come_back_as_they_went_in(plant_map, hostile_titles):
    content = plant_map(60, hostile_titles)
    (about, text), (_, program) = scripts(render_map(content))
    assert about == {"type": "application/json", "id": "data"}
    assert "createCamera" in program
    data = json.loads(text)
    assert data["titles"] == list(content.titles)
    assert data["facts"] == [["Feeds", "UK1"], ["Score", "64 of 100"]]
    np.testing.assert_array_equal(unpack(data["xy"]).reshape(-1, 2), content.xy)
    np.testing.assert_array_equal(
        unpack(data["neighbours"]).astype(int).reshape(60, 5) - 1, content.neighbours
    )
    np.testing.assert_allclose(unpack(data["cosines"]).reshape(60, 5) / 100, content.cosines, atol=0.00501)
    np.testing.assert_array_equal(unpack(data["clusters"]), content.clusters)
    np.testing.assert_array_equal(unpack(data["airings"]), content.airings)
    np.testing.assert_array_equal(unpack(data["heldOut"]), content.held_out)
    lengths, values = unpack(data["categories"]["lengths"]), unpack(data["categories"]["values"])
    rows = np.split(values, np.cumsum(lengths)[:-1])
    assert [[data["categoryNames"][c] for c in row] for row in rows] == [
        list(row) for row in content.categories
    ]
    carried = data["times"]
    minutes, channels = (
        np.split(unpack(rows["values"]).astype(int) + first, np.cumsum(unpack(rows["lengths"]))[:-1])
        for rows, first in ((carried["minutes"], carried["since"]), (carried["channels"], 0))
    )
    names = [[carried["channelNames"][channel] for channel in row] for row in channels]
    assert [
        list(zip(row, own, strict=True)) for row, own in zip(minutes, names, strict=True)
    ] == content.times
    named = [data["categoryNames"][place] if place >= 0 else None for place in data["clusterCategories"]]
    assert named == list(content.cluster_categories)
    assert data["reasons"]["neighbours"] == 2 and data["reasons"]["pairs"] == 4
    np.testing.assert_array_equal(unpack(data["reasons"]["share"]).reshape(60, 2, 4), content.reasons.share)
    own = np.split(
        unpack(data["reasons"]["words"]["values"]),
        np.cumsum(unpack(data["reasons"]["words"]["lengths"]))[:-1],
    )
    assert [[data["reasons"]["wordNames"][word] for word in row] for row in own] == [
        list(dict.fromkeys(words)) for words in content.reasons.words
    ]


def test_parts_of_clusters_come_back_as_they_went_in(plant_map):
    parts = np.arange(60, dtype=np.int32) % 3 - 1
    some = {"subclusters": parts, "subcluster_names": ["A", "B"], "subcluster_parents": [0, 2]}
    data = json.loads(encode_content(dataclasses.replace(plant_map(60), **some)))
    np.testing.assert_array_equal(unpack(data["subclusters"]), parts)
    assert (data["subclusterNames"], data["subclusterParents"]) == (["A", "B"], [0, 2])
    assert json.loads(encode_content(plant_map(60)))["subclusters"] is None


def test_no_title_leaves_the_data_element(plant_map, hostile_titles):
    text = encode_content(plant_map(30, hostile_titles))
    assert not set(text) & set("<>&\u2028\u2029")


def test_heading_is_escaped_and_marks_in_it_stay_text(plant_map):
    page = render_map(dataclasses.replace(plant_map(9), heading="<i>{{script}}</i> & co"))
    assert '<h1 dir="auto">&lt;i&gt;{{script}}&lt;/i&gt; &amp; co</h1>' in page
    assert len(scripts(page)) == 2


def test_descriptions_arrive_whole_and_only_when_given(plant_map, hostile_titles):
    told = [*hostile_titles, *[""] * (30 - len(hostile_titles))]
    page = render_map(dataclasses.replace(plant_map(30), descriptions=told))
    (_, text), _ = scripts(page)
    assert json.loads(text)["descriptions"] == told
    assert json.loads(encode_content(plant_map(30)))["descriptions"] == []


def test_half_surrogates_become_replacement_characters(plant_map):
    page = render_map(plant_map(9, ("broken \ud83d end",)))
    page.encode("utf-8")
    assert json.loads(scripts(page)[0][1])["titles"][0] == "broken \ufffd end"


def test_page_refers_to_nothing_outside(plant_map):
    page = render_map(plant_map(9))
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    for forbidden in (
        "url(",
        "@import",
        "import(",
        "fetch(",
        "XMLHttpRequest",
        "eval(",
        "localStorage",
        "sessionStorage",
        "innerHTML",
        "document.write",
    ):
        assert forbidden not in page, forbidden


def test_every_script_of_the_map_is_in_the_page():
    assert sorted(SCRIPTS) == sorted(path.name for path in HERE.glob("map_*.js"))


@pytest.mark.parametrize(("titles", "megabytes"), [(10_000, 3.0), (20_000, 6.0)])
def test_size(plant_map, titles, megabytes):
    assert len(render_map(plant_map(titles, neighbours=10)).encode()) < megabytes * 1e6


@pytest.mark.slow
def test_more_titles_than_two_bytes_count(plant_map):
    content = plant_map(65_600, neighbours=1)
    content.neighbours[0, 0] = 65_599
    assert unpack(json.loads(encode_content(content))["neighbours"])[0] == 65_600


def test_empty(plant_map):
    content = dataclasses.replace(plant_map(0), cluster_names=[], cluster_categories=[])
    assert json.loads(encode_content(content))["titles"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"titles": ["one"]}, "xy has 5 rows for 1 titles"),
        ({"xy": np.full((5, 2), np.nan)}, "xy holds"),
        ({"xy": np.full((5, 2), 1.5)}, r"xy holds .*1\.5.*, expected -1.0 to 1.0"),
        ({"xy": np.zeros((5, 3))}, r"xy has shape \(5, 3\)"),
        ({"clusters": np.full(5, 5)}, "clusters holds .*5.*, expected -1 to 4"),
        ({"neighbours": np.full((5, 5), 5)}, "neighbours holds .*5.*, expected -1 to 4"),
        ({"cosines": np.full((5, 5), 2.0)}, "cosines holds"),
        ({"cosines": np.zeros((5, 4))}, "must both be"),
        ({"airings": [-1, 0, 0, 0, 0]}, "airings holds"),
        ({"held_out": np.zeros(4, bool)}, "held_out has 4 rows"),
        ({"days": ["2025-06-01"]}, "days has 1 rows"),
        ({"cluster_colours": [1]}, "cluster_colours has 1 rows for 5 clusters"),
        ({"cluster_categories": ["news"]}, "cluster_categories has 1 rows for 5 clusters"),
        ({"times": [[]]}, "times has 1 rows for 5 titles"),
        ({"descriptions": ["one"]}, "descriptions has 1 rows for 5 titles"),
        ({"subclusters": np.full(4, -1)}, "subclusters has 4 rows for 5 titles"),
        ({"subclusters": np.zeros(5, int)}, "subclusters holds .*0.*, expected -1 to -1"),
        ({"subcluster_names": ["one"]}, "subcluster_parents has 0 rows for 1 subclusters"),
        (
            {"subclusters": np.zeros(5, int), "subcluster_names": ["one"], "subcluster_parents": [5]},
            "subcluster_parents holds .*5.*, expected 0 to 4",
        ),
    ],
)
def test_what_does_not_fit_is_refused(plant_map, change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(_five(plant_map), **change)


def _five(plant_map) -> MapContent:
    """Five titles with room for five neighbours each, none given."""
    content = plant_map(10)
    of_titles = ("titles", "xy", "categories", "channels", "airings", "clusters", "cosines", "held_out")
    told = ("languages", "days", "fresh", "times")
    rows = {name: getattr(content, name)[:5] for name in (*of_titles, *told)}
    return dataclasses.replace(content, **rows, neighbours=np.full((5, 5), -1))
