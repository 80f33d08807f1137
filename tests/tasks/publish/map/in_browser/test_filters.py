"""Filters, highlights, rings of new titles and links to a view in Chromium."""

import dataclasses

import pytest

from tasks.publish.map.page import render_map

pytestmark = pytest.mark.slow


def test_filters_are_combined_with_each_other_and_with_a_highlight(page):
    lit = "guidespace.counts().lit"
    page.locator("#filter-language").select_option("de")
    assert page.evaluate(lit) == 34
    assert page.locator("#count").inner_text() == "34 of 100 titles"
    page.locator("#filter-day").select_option("2025-06-01")
    assert page.evaluate(lit) == len([i for i in range(100) if i % 3 == 0 and i % 7 == 0])
    page.locator("#legend .entry", has_text="news").click()
    assert page.evaluate(lit) == len([i for i in range(100) if i % 21 == 0 and i % 5 == 0 and i % 7])
    page.get_by_role("button", name="Clear highlight and filters").click()
    assert page.evaluate(lit) == 100
    page.locator("#filter-day").select_option("2025-06-09")  # every second title airs on a second day
    assert page.evaluate(lit) == 50
    page.locator("#filter-day").select_option("")
    page.get_by_label("New since the last run, with a ring (5)").check()
    assert page.evaluate(lit) == 5
    page.locator("#filter-channel").select_option("ITV")
    assert page.evaluate(lit) == 5 and page.locator("#filter-channel option").count() == 3
    page.locator("#overlay").focus()
    page.keyboard.press("Escape")
    assert page.evaluate(lit) == 100 and page.locator("#filter-channel").input_value() == ""


def test_new_titles_have_rings_up_to_a_limit(open_map, plant_map, tmp_path, becomes):
    page = open_map()
    becomes(page, "guidespace.counts().ringed === 5")
    page.locator("#filter-language").select_option("de")
    new_german = len([i for i in range(100) if i % 20 == 3 and i % 3 == 0])
    becomes(page, f"guidespace.counts().ringed === {new_german}")
    crowded = tmp_path / "crowded.html"
    crowded.write_text(
        render_map(dataclasses.replace(plant_map(1600), is_new=[True] * 1600)), encoding="utf-8"
    )
    page = open_map(crowded)
    becomes(page, "guidespace.counts().lit === 1600")
    assert page.evaluate("guidespace.counts().ringed") == 0


def test_a_link_reopens_the_view(open_map, where, becomes):
    page = open_map()
    assert page.evaluate("guidespace.link()") == "#"
    page.get_by_text("Cluster", exact=True).first.click()
    page.locator("#filter-language").select_option("en")
    page.locator("#legend .entry", has_text="quiz").click()
    page.evaluate("guidespace.flyTo('Quiz 24')")
    page.mouse.move(700, 420)
    page.mouse.wheel(0, -80)
    becomes(page, "location.hash.includes('at=') && location.hash === guidespace.link()")
    link = page.evaluate("location.hash")
    at = where(page, "Quiz 24")
    again = open_map(link=link)
    assert again.evaluate("guidespace.counts()") == page.evaluate("guidespace.counts()")
    assert again.evaluate("guidespace.selected()") == "Quiz 24"
    assert where(again, "Quiz 24") == pytest.approx(at, abs=0.5)
    assert again.locator("#filter-language").input_value() == "en"
    assert again.evaluate("guidespace.link()") == link


def test_a_link_with_unknown_values_opens_the_whole_map(open_map):
    page = open_map(link="#title=No+such+title&by=nothing&lit=none&language=tlh&at=a,b,c&day=yesterday")
    assert page.evaluate("[guidespace.selected(), guidespace.counts().lit, guidespace.link()]") == [
        None,
        100,
        "#",
    ]


@pytest.mark.parametrize(
    "link",
    [
        "#by=constructor",
        "#at=0,0,0",
        "#at=,,",
        "#at=0,0,-3",
        "#at=9e9,9e9,1",
        "#at=0,0,1e300",
        "#__proto__=x&by=toString",
    ],
)
def test_an_invalid_link_leaves_the_map_usable(open_map, where, link):
    page = open_map(link=link)
    x, y = where(page, "News 50")
    page.mouse.move(600, 400)
    page.mouse.down()
    page.mouse.move(620, 400)
    page.mouse.up()
    assert where(page, "News 50") == pytest.approx((x + 20, y), abs=0.01)
    page.evaluate("guidespace.flyTo('News 50')")
    x, y = where(page, "News 50")
    assert 0 < x < 1200 and 0 < y < 800


def test_another_link_in_the_same_window_replaces_the_view(open_map, where, becomes):
    fresh = open_map(link="#lit=quiz&language=de")
    page = open_map(link="#by=cluster&lit=quiz+%C2%B7+tonight&title=Quiz+24&at=0.3,0.2,4.000")
    assert page.evaluate(
        "[guidespace.selected(), guidespace.counts().lit, guidespace.counts().colouredBy]"
    ) == ["Quiz 24", 10, "cluster"]
    page.evaluate("location.hash = '#lit=quiz&language=de'")
    becomes(page, "guidespace.selected() === null")
    assert page.evaluate("guidespace.counts()") == fresh.evaluate("guidespace.counts()")
    assert where(page, "News 50") == pytest.approx(where(fresh, "News 50"), abs=0.01)
    assert page.locator("#card").is_hidden() and page.evaluate("guidespace.link()") == "#lit=quiz&language=de"


def test_clusters_keep_their_colours(open_map, content, tmp_path):
    path = tmp_path / "coloured.html"
    path.write_text(
        render_map(dataclasses.replace(content, cluster_colours=[4, 0, 1, 2, 3])), encoding="utf-8"
    )
    page = open_map(path)
    page.get_by_text("Cluster", exact=True).first.click()
    dot = page.locator("#legend .entry", has_text="football").locator(".dot")
    colour = dot.evaluate("dot => getComputedStyle(dot).backgroundColor")
    assert colour == "rgb(111, 71, 203)"  # colour 0, although it is not the largest


def test_all_controls_are_accessible_by_keyboard(page):
    page.locator("#search").focus()
    reached = []
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "(({id, className, ariaLabel}) => [id, className, ariaLabel].filter(Boolean).join(' '))"
                "(document.activeElement)"
            )
        )
    names = "filter-channel", "filter-language", "filter-day", "filter-new", "entry", "overlay", "Zoom in"
    missing = [name for name in names if not any(name in element for element in reached)]
    assert missing == [], reached
    page.locator("#filter-language").focus()
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#filter-language").input_value()
    lit = page.evaluate("guidespace.counts().lit")
    assert (chosen, lit) in (("de", 34), ("en", 66))
    page.locator("#legend .entry").first.focus()
    page.keyboard.press("Enter")
    assert 0 < page.evaluate("guidespace.counts().lit") < lit
