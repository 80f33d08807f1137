"""The data of the page survive a round trip, and the page makes no requests."""

import base64
import dataclasses
import html.parser
import json
import re

import numpy as np
import pytest

from tasks.publish.map.page import encode_content, render_map


class Scripts(html.parser.HTMLParser):
    """Collects the script elements as a browser parses them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[dict, str]] = []
        self.open = False

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.open = True
            self.elements.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self.open = self.open and tag != "script"

    def handle_data(self, data):
        if self.open:
            attributes, text = self.elements[-1]
            self.elements[-1] = (attributes, text + data)


def scripts(page: str) -> list[tuple[dict, str]]:
    parser = Scripts()
    parser.feed(page)
    return parser.elements


def unpack(packed: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["base64"]), dtype="<" + packed["type"])


def test_data_survive_a_round_trip(plant_map, hostile_titles):
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
    assert [[data["categoryNames"][c] for c in row] for row in rows] == [*map(list, content.categories)]
    times = data["times"]
    minutes = unpack(times["minutes"]["values"]).astype(int) + times["since"]
    np.testing.assert_array_equal(minutes, content.times.minutes.values)
    np.testing.assert_array_equal(unpack(times["minutes"]["lengths"]), content.times.minutes.lengths)
    np.testing.assert_array_equal(unpack(times["channels"]["values"]), content.times.channels.rows.values)
    assert times["channelNames"] == content.times.channels.names
    categories = [data["categoryNames"][index] if index >= 0 else None for index in data["clusterCategories"]]
    assert categories == list(content.cluster_categories)
    assert data["reasons"]["neighbours"] == 2 and data["reasons"]["pairs"] == 4
    np.testing.assert_array_equal(unpack(data["reasons"]["share"]).reshape(60, 2, 4), content.reasons.share)
    words = [data["reasons"]["wordNames"][word] for word in unpack(data["reasons"]["words"]["values"])]
    assert words == [word for title_words in content.reasons.words for word in dict.fromkeys(title_words)]


def test_titles_do_not_end_the_data_element(plant_map, hostile_titles):
    text = encode_content(plant_map(30, hostile_titles))
    assert not set(text) & set("<>&\u2028\u2029")


def test_heading_is_escaped_and_placeholders_in_it_stay_text(plant_map):
    page = render_map(dataclasses.replace(plant_map(9), heading="<i>{{script}}</i> & co"))
    assert '<h1 dir="auto">&lt;i&gt;{{script}}&lt;/i&gt; &amp; co</h1>' in page
    assert len(scripts(page)) == 2


def test_descriptions_survive_a_round_trip(plant_map, hostile_titles):
    descriptions = [*hostile_titles, *[""] * (30 - len(hostile_titles))]
    (_, text), _ = scripts(render_map(dataclasses.replace(plant_map(30), descriptions=descriptions)))
    assert json.loads(text)["descriptions"] == descriptions


def test_half_surrogates_become_replacement_characters(plant_map):
    page = render_map(plant_map(9, ("broken \ud83d end",)))
    page.encode("utf-8")
    assert json.loads(scripts(page)[0][1])["titles"][0] == "broken \ufffd end"


def test_page_makes_no_requests(plant_map):
    page = render_map(plant_map(9))
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    forbidden = "url( @import import( fetch( XMLHttpRequest eval( localStorage sessionStorage innerHTML"
    for text in forbidden.split():
        assert text not in page, text


@pytest.mark.parametrize(("titles", "megabytes"), [(10_000, 3.0), (20_000, 6.0)])
def test_size(plant_map, titles, megabytes):
    assert len(render_map(plant_map(titles, neighbours=10)).encode()) < megabytes * 1e6


@pytest.mark.slow
def test_indices_of_many_titles_have_four_bytes(plant_map):
    content = plant_map(65_600, neighbours=1)
    content.neighbours[0, 0] = 65_599
    assert unpack(json.loads(encode_content(content))["neighbours"])[0] == 65_600


def test_empty(plant_map):
    content = dataclasses.replace(plant_map(0), cluster_names=[], cluster_categories=[], cluster_colours=[])
    assert json.loads(encode_content(content))["titles"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"titles": ["one"]}, "xy has 10 rows, expected 1"),
        ({"xy": np.full((10, 2), np.nan)}, "xy contains .*nan.*, expected -1.0 to 1.0"),
        ({"clusters": np.full(10, 5)}, "clusters contains .*5.*, expected -1 to 4"),
        ({"neighbours": np.full((10, 5), 10)}, "neighbours contains .*10.*, expected -1 to 9"),
        ({"cluster_colours": [1]}, "cluster_colours has 1 rows, expected 5"),
        ({"subcluster_names": ["one"]}, "subcluster_parents has 0 rows, expected 1"),
    ],
)
def test_inconsistent_content_is_an_error(plant_map, change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(plant_map(10), **change)
