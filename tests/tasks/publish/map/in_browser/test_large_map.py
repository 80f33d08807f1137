"""A map of 100,000 titles: file size, interaction and a limit on the work per frame."""

from pathlib import Path

import numpy as np
import pytest

from tasks.publish.map.airing_times import AiringTimes
from tasks.publish.map.page import MapContent, render_map
from tasks.publish.map.reasons import NEIGHBOURS, PAIRS, Reasons

pytestmark = pytest.mark.slow

TITLES, CLUSTERS, CATEGORIES, CHANNELS, DAYS = 100_000, 1_500, 150, 300, 14
# Limits per frame: labels of 40 clusters and 260 titles; rectangles of panels, 600 points, three per cluster
# for 500 clusters in view and four per labelled title.
MAX_LABELS, MAX_RECTANGLES = 300, 10 + 600 + 3 * 500 + 4 * 270
MAX_POINTS = 50_000  # map_levels.js
RECORD = """() => {
  window.frames_ = [];
  (function next() {
    window.frames_.push(guidespace.work());
    requestAnimationFrame(next);
  })();
}"""


def names_of_many_titles(rng: np.random.Generator) -> list[str]:
    """Makes different titles of about 3.5 words with Zipf frequencies."""
    letters = np.array(list("eeeaaiioonnrrssttlldhcumgpbk"))
    words = [
        "".join(letters[rng.integers(len(letters), size=length)])
        for length in rng.integers(3, 11, size=20_000)
    ]
    drawn = (20_000 ** rng.random((TITLES, 6))).astype(int) - 1
    lengths = 1 + np.minimum(rng.poisson(2.5, TITLES), 5)
    return [
        f"{' '.join(words[word] for word in row[:length]).title()} {title}"
        for title, (row, length) in enumerate(zip(drawn, lengths, strict=True))
    ]


@pytest.fixture(scope="module")
def large_map() -> MapContent:
    """Clusters of Zipf sizes with all data of a nightly map."""
    rng = np.random.default_rng(0)
    names = names_of_many_titles(rng)
    clusters = (CLUSTERS * rng.random(TITLES) ** 2.2).astype(np.int32)
    centres, spread = (
        rng.uniform(-0.9, 0.9, (CLUSTERS, 2)) * rng.random((CLUSTERS, 1)) ** 0.3,
        rng.uniform(0.004, 0.03, (CLUSTERS, 2)),
    )
    xy = np.clip(centres[clusters] + spread[clusters] * rng.normal(size=(TITLES, 2)), -1, 1).astype(
        np.float32
    )
    neighbours = rng.integers(TITLES, size=(TITLES, 10)).astype(np.int32)
    shape = (TITLES, NEIGHBOURS, PAIRS)
    left, right = rng.integers(1, 4, (2, *shape)).astype(np.uint8)
    channels, days = rng.integers(CHANNELS, size=(TITLES, 3)), rng.integers(DAYS, size=(TITLES, 3))
    return MapContent(
        heading="Guides of June 2025",
        facts={"Feeds": "twelve"},
        titles=names,
        xy=xy,
        categories=[
            [f"category {row}"] if row < 130 else []
            for row in (CATEGORIES * rng.random(TITLES)).astype(int).tolist()
        ],
        channels=[[f"Channel {one}" for one in row] for row in channels.tolist()],
        airings=rng.zipf(1.8, TITLES).clip(1, 5_000).tolist(),
        clusters=np.where(rng.random(TITLES) < 0.03, -1, clusters).astype(np.int32),
        cluster_names=[
            f"{names[number].split()[0]} · {names[number + 7].split()[0]}" for number in range(CLUSTERS)
        ],
        neighbours=neighbours,
        cosines=-np.sort(-rng.uniform(0.3, 0.95, neighbours.shape), axis=1),
        held_out=rng.random(TITLES) < 0.1,
        languages=[("en", "de", "fr", "es", None)[one] for one in rng.integers(5, size=TITLES)],
        days=[sorted({f"2025-06-{1 + day:02}" for day in row}) for row in days.tolist()],
        reasons=Reasons(
            [name.lower().split() for name in names], left, right, rng.integers(2, 60, shape).astype(np.int8)
        ),
        is_new=rng.random(TITLES) < 0.02,
        times=AiringTimes.from_rows(
            [
                [(29_155_320 + minute, f"Channel {minute % CHANNELS}") for minute in sorted(row)]
                for row in rng.integers(20_000, size=(TITLES, 4)).tolist()
            ]
        ),
        cluster_categories=[None] * CLUSTERS,
        cluster_colours=range(CLUSTERS),
        subclusters=np.full(TITLES, -1),
        subcluster_names=(),
        subcluster_parents=(),
    )


@pytest.fixture(scope="module")
def large_file(large_map, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("large") / "map.html"
    path.write_text(render_map(large_map), encoding="utf-8")
    return path


def test_the_file_is_below_thirty_megabytes(large_file):
    size = large_file.stat().st_size / 1e6
    print(f"{size:.1f} MB")
    assert size < 30


def test_it_opens_pans_searches_and_filters(open_map, large_map, large_file, becomes):
    page = open_map(large_file)
    assert page.locator("#count").inner_text() == "100,000 titles"
    before = page.evaluate("title => guidespace.where(title)", large_map.titles[5])["x"]
    page.mouse.move(600, 400)
    page.mouse.down()
    page.evaluate(RECORD)
    page.mouse.move(795, 400, steps=20)
    page.mouse.up()
    assert page.evaluate("title => guidespace.where(title)", large_map.titles[5])["x"] == pytest.approx(
        before + 195, abs=0.01
    )
    page.locator("#filter-day").select_option("2025-06-03")
    assert page.evaluate("guidespace.counts().lit") == sum("2025-06-03" in days for days in large_map.days)
    page.locator("#filter-day").select_option("")
    page.locator("#overlay").focus()
    page.keyboard.press("/")
    page.keyboard.insert_text(large_map.titles[77_777])
    page.keyboard.press("Enter")
    becomes(page, "title => guidespace.selected() === title", large_map.titles[77_777])
    assert page.locator("#card .neighbour-title").count() == 10
    for _ in range(3):  # from the title to the whole map, with a few hundred titles named on the way
        page.keyboard.press("-")
    page.keyboard.press("0")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    frames = page.evaluate("window.frames_")
    most = {name: max(work[name] for work in frames) for name in frames[0]}
    print(len(frames), most)
    assert len(frames) > 20
    assert 0 < most["points"] <= MAX_POINTS
    assert 0 < most["looked"] <= TITLES + int(large_map.is_new.sum())  # new ones twice, for labels and rings
    assert 0 < most["names"] <= MAX_LABELS
    assert 0 < most["rectangles"] <= MAX_RECTANGLES


def test_highlighted_and_near_points_are_drawn_in_every_frame(open_map, large_map, large_file):
    page = open_map(large_file)
    draws = """guidespace.draws()"""
    assert 20_000 < len(set(page.evaluate(draws))) < MAX_POINTS
    page.locator("#filter-channel").select_option("Channel 7")
    lit = {title for title, channels in enumerate(large_map.channels) if "Channel 7" in channels}
    assert lit and lit <= set(page.evaluate(draws))
    page.locator("#filter-channel").select_option("")
    near = large_map.titles[77_777]
    assert page.evaluate("title => guidespace.flyTo(title)", near)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    drawn, inside = set(page.evaluate(draws)), []
    for title in np.flatnonzero((np.abs(large_map.xy - large_map.xy[77_777]) < 0.02).all(axis=1)).tolist():
        at = page.evaluate("title => guidespace.where(title)", large_map.titles[title])
        if 0 <= at["x"] <= 1200 and 0 <= at["y"] <= 800:
            inside.append(title)
    assert 77_777 in inside and len(inside) > 20
    assert set(inside) <= drawn and len(drawn) < 5_000
