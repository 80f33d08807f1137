"""Search, selection, movement, colours and cards of the map in Chromium."""

import dataclasses

import numpy as np
import pytest

from tasks.publish.map.page import render_map

pytestmark = pytest.mark.slow

NO_WEBGL = """const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind === "webgl" ? null : get.call(this, kind, ...rest);
};"""

COLOUR = "dot => getComputedStyle(dot).backgroundColor"


def test_opens(page):
    assert page.title() == "Guide of 7 June 2025 · GuideSpace"
    assert page.locator("#count").inner_text() == "100 titles"
    assert page.locator("#facts").inner_text().split("\n") == ["Feeds", "UK1", "Score", "64 of 100"]
    counts = page.evaluate("guidespace.counts()")
    assert {name: counts[name] for name in ("titles", "categories", "clusters", "noise", "lit")} == {
        "titles": 100,
        "categories": 6,
        "clusters": 5,
        "noise": 10,
        "lit": 100,
    }
    assert page.evaluate("typeof window.broken") == "undefined"


@pytest.mark.parametrize("script", ["", NO_WEBGL], ids=["webgl", "canvas"])
def test_points_are_drawn_at_their_positions(open_map, script, where):
    page = open_map(script=script)
    if script:
        assert page.evaluate("guidespace.counts().drawnBy") == "canvas"
    x, y = where(page, "Cooking 32")
    around = {"width": 3, "height": 3}
    drawn = page.screenshot(clip={"x": x - 1, "y": y - 1, **around})
    assert drawn != page.screenshot(clip={"x": 700, "y": 770, **around})


def test_search_flies_to_the_title_and_shows_its_neighbours(page, content, where):
    page.keyboard.press("/")
    page.keyboard.type("quiz 24")
    assert page.locator("#matches li").count() == 1
    page.keyboard.press("Enter")
    assert page.evaluate("guidespace.selected()") == "Quiz 24"
    assert page.locator("#card h2").inner_text() == "Quiz 24"
    expected = [content.titles[i] for i in content.neighbours[24]]
    assert page.locator("#card .neighbour-title").all_inner_texts() == expected
    assert page.locator("#card .cosine").first.inner_text() == f"{content.cosines[24, 0]:.2f}"
    first_words = [title.lower().split()[0] for title in expected[:2]]
    related = "“quiz” and “{}” occur in the same kind of programme".format
    texts = ["shared word “quiz”" if word == "quiz" else related(word) for word in first_words]
    texts = [f"{text}; similar meaning; but different channels" for text in texts]
    assert page.locator("#card .why").all_inner_texts() == texts  # the other three have no reasons
    assert "Held out" in page.locator("#card").inner_text()
    x, _ = where(page, "Quiz 24")
    card, legend = page.locator("#card").bounding_box(), page.locator("#legend").bounding_box()
    assert abs(x - (legend["x"] + legend["width"] + card["x"]) / 2) < 2  # centre of the free area
    page.locator("#card .neighbour").first.click()
    assert page.evaluate("guidespace.selected()") == expected[0]
    assert page.locator("#card h2").inner_text() == expected[0]
    page.keyboard.press("Escape")
    assert page.evaluate("guidespace.selected()") is None
    assert page.locator("#card").is_hidden()


def test_search_ignores_case_and_diacritics_and_supports_arrow_keys(page):
    page.locator("#search").fill("AMELIE A")
    assert page.locator("#matches .match-title").all_inner_texts() == ["Amélie à Paris"]
    assert page.locator("#matches mark").inner_text() == "Amélie à"
    page.locator("#search").fill("crime")
    titles = page.locator("#matches .match-title").all_inner_texts()
    assert len(titles) == 12
    assert "and 6 more" in page.locator("#match-note").inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert page.evaluate("guidespace.selected()") == titles[1]


def test_search_without_a_match_shows_a_message(page):
    page.locator("#search").fill("<b>nothing of the kind")
    assert page.locator("#match-note").inner_text() == "No title contains “<b>nothing of the kind”."
    page.keyboard.press("Enter")
    assert page.evaluate("guidespace.selected()") is None


def test_titles_are_text_never_markup(page, hostile_titles):
    for title in hostile_titles:
        assert page.evaluate("title => guidespace.flyTo(title)", title)
        assert page.locator("#card h2").text_content() == title
    assert page.locator("#card h2 *").count() == 0
    assert page.evaluate("typeof window.broken") == "undefined"
    assert page.evaluate("guidespace.flyTo('no such title')") is False


def test_switch_and_legend(page):
    names = page.locator("#legend .entry-name")
    assert names.all_inner_texts()[-1] == "no category"
    page.get_by_text("Cluster", exact=True).first.click()
    assert page.evaluate("guidespace.counts().colouredBy") == "cluster"
    assert sorted(names.all_inner_texts()) == sorted(
        [f"{kind} · tonight" for kind in ("news", "football", "cooking", "crime drama", "quiz")]
        + ["in no cluster"]
    )
    football = page.locator("#legend .entry", has_text="football")
    football.click()
    assert page.evaluate("guidespace.counts().lit") == 20
    assert page.locator("#count").inner_text() == "20 of 100 titles"
    assert football.get_attribute("aria-pressed") == "true"
    page.locator("#overlay").focus()
    page.keyboard.press("Escape")
    assert page.evaluate("guidespace.counts().lit") == 100


def test_hover_click_and_miss(page, where):
    x, y = where(page, "Football 31")
    page.mouse.move(x, y)
    assert page.locator("#hover h2").inner_text() == "Football 31"
    page.mouse.click(x, y)
    assert page.evaluate("guidespace.selected()") == "Football 31"
    assert page.locator("#card h2").inner_text() == "Football 31"
    page.mouse.click(700, 780)
    assert page.evaluate("guidespace.selected()") is None


def test_drag_wheel_and_keys_move_the_map(page, where, becomes):
    x, y = where(page, "News 50")
    page.mouse.move(700, 420)
    page.mouse.down()
    page.mouse.move(760, 440, steps=3)
    page.mouse.up()
    assert where(page, "News 50") == pytest.approx((x + 60, y + 20), abs=0.01)
    assert page.evaluate("guidespace.selected()") is None
    x, y = where(page, "News 50")
    page.mouse.move(x, y)
    apart = abs(where(page, "Cooking 32")[0] - x)
    page.mouse.wheel(0, -100)
    becomes(page, "([apart, x]) => Math.abs(guidespace.where('Cooking 32').x - x) > 1.1 * apart", [apart, x])
    assert where(page, "News 50") == pytest.approx((x, y), abs=0.5)  # the pointer has whole pixels
    x, y = where(page, "News 50")
    page.keyboard.press("ArrowLeft")
    assert where(page, "News 50")[0] == pytest.approx(x + 90, abs=0.01)


def test_dark_by_preference_and_by_the_button(open_map):
    page = open_map(color_scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Light colours").click()
    assert page.evaluate(
        "[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
    ) == ["light", "rgb(247, 248, 250)"]


def test_help_opens_and_closes(open_map):
    page = open_map()
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()


def test_no_titles_at_all(open_map, plant_map, tmp_path):
    empty = tmp_path / "empty.html"
    empty.write_text(render_map(plant_map(0)), encoding="utf-8")
    page = open_map(empty)
    assert page.locator("#empty").inner_text() == "This guide has no titles to show."
    assert page.evaluate("guidespace.counts().titles") == 0


def airs(page, title: str) -> str:
    page.evaluate("title => guidespace.flyTo(title)", title)
    return page.locator("#card .fact", has_text="Airs").last.locator("dd").inner_text()


def test_the_card_shows_the_next_or_last_airing(open_map):
    at = "Date.now = () => Date.UTC(2025, 5, {day}, 12)".format
    page = open_map(script=at(day=7))
    assert airs(page, "Quiz 24") == "next Sat 7 June at 18:24 on BBC One"
    assert airs(page, "Quiz 29") == "among others Sat 7 June at 18:29 on BBC One"  # more than MAX_TIMES
    page = open_map(script=at(day=8))
    assert airs(page, "Quiz 24") == "last Sat 7 June at 18:24 on BBC One"
    assert airs(page, "Quiz 34") == "next Sun 8 June at 18:34 on ITV"
    assert airs(page, "Quiz 29") == "next Sun 8 June at 18:29 on ITV"
    page = open_map(script="Date.now = () => Date.UTC(2026, 5, 7)")
    assert airs(page, "Quiz 24") == "last Sat 7 June 2025 at 18:24 on BBC One"


def test_titles_have_the_colour_of_the_category_of_their_cluster(open_map, plant_map, tmp_path):
    sport, football = "rgb(111, 71, 203)", "rgb(191, 31, 8)"  # the most frequent category and the rarest
    for categories, expected in (
        ([None] * 5, football),
        (["news", "sport", "cooking", "crime drama", None], sport),
    ):
        path = tmp_path / f"{expected}.html"
        names = ["news"] * 40 + ["football"] * 20 + ["sport"] * 40
        both = [["sport", "football"] if name == "football" else [name] for name in names]
        content = dataclasses.replace(plant_map(100), categories=both, clusters=np.full(100, 1))
        path.write_text(
            render_map(dataclasses.replace(content, cluster_categories=categories)), encoding="utf-8"
        )
        page = open_map(path)
        page.locator("#search").fill("quiz 44")
        assert page.locator("#matches .dot").evaluate(COLOUR) == expected
    page.get_by_role("button", name="Dark colours").click()
    page.locator("#search").fill("quiz 44")
    assert page.locator("#matches .dot").evaluate(COLOUR) == expected


def test_subclusters_are_labelled_when_the_map_is_zoomed(open_map, plant_map, tmp_path, becomes):
    path = tmp_path / "parts.html"
    content = plant_map(800)
    xy = content.xy / np.where(np.arange(800) < 100, 1, 4)[:, None]  # outliers keep the map large
    one = {
        "xy": xy.astype(np.float32),
        "clusters": np.zeros(800, np.int32),
        "cluster_names": ["All"],
        "cluster_categories": [None],
        "cluster_colours": [0],
    }
    parts = {"subclusters": content.clusters, "subcluster_names": ["", *(f"All: {name}" for name in "BCDE")]}
    more = {"subcluster_parents": [0] * 5}
    path.write_text(render_map(dataclasses.replace(content, **one, **parts, **more)), encoding="utf-8")
    page = open_map(path)
    named = "guidespace.names().map(({ text }) => text).filter((text) => text.startsWith('All'))"
    becomes(page, f"{named}.length > 0")
    assert page.evaluate(named) == ["All"]
    page.locator("#overlay").focus()
    for _ in range(3):
        page.keyboard.press("+")
    becomes(page, f"{named}.some((text) => text.startsWith('All: '))")
