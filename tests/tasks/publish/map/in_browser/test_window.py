"""The map in windows of different sizes and in a frame."""

import dataclasses
import html

import numpy as np
import pytest

from tasks.publish.map.page import render_map

pytestmark = pytest.mark.slow


def test_small_window(open_map, where):
    page = open_map()
    page.set_viewport_size({"width": 375, "height": 667})
    page.evaluate("guidespace.flyTo('Quiz 24')")
    x, y = where(page, "Quiz 24")
    card = page.locator("#card").bounding_box()
    assert 0 < x < 375
    assert 56 < y < card["y"]
    assert card["y"] + card["height"] <= 667


def test_all_titles_stay_visible_when_the_window_is_resized(open_map, content, becomes):
    page = open_map()
    for width, height in ((375, 667), (1200, 500), (1200, 800)):
        page.set_viewport_size({"width": width, "height": height})
        becomes(
            page,
            "([width, height]) => innerWidth === width"
            " && document.querySelector('#overlay').height === height",
            [width, height],
        )
        places = [page.evaluate("title => guidespace.where(title)", title) for title in content.titles]
        assert all(0 < place["x"] < width and 56 < place["y"] < height for place in places), (width, height)
        assert page.evaluate("guidespace.link()") == "#"


def test_the_legend_is_hidden_in_a_narrow_window(open_map, becomes):
    page = open_map()
    shown, fold = page.locator("#legend-body"), page.get_by_role("button", name="Show or hide the legend")
    assert shown.is_visible() and fold.get_attribute("aria-expanded") == "true"
    page.set_viewport_size({"width": 375, "height": 667})
    becomes(page, "document.getElementById('legend').classList.contains('folded')")
    assert shown.is_hidden() and fold.get_attribute("aria-expanded") == "false"
    fold.click()
    page.set_viewport_size({"width": 400, "height": 667})  # still narrow: the legend stays open
    assert shown.is_visible()
    page.set_viewport_size({"width": 1200, "height": 800})
    becomes(page, "!document.getElementById('legend').classList.contains('folded')")
    assert fold.get_attribute("aria-expanded") == "true"


def test_a_map_of_one_title_stays_in_the_window(open_map, plant_map, tmp_path, where):
    one = tmp_path / "one.html"
    alone = dataclasses.replace(
        plant_map(1, neighbours=0), neighbours=np.full((1, 5), -1), cosines=np.zeros((1, 5)), reasons=None
    )
    one.write_text(render_map(alone), encoding="utf-8")
    page = open_map(one)
    assert page.locator("#count").inner_text() == "1 title"
    assert page.evaluate("guidespace.flyTo('News 0')")
    x, y = where(page, "News 0")
    assert 0 < x < 1200 and 64 < y < 800
    page.keyboard.press("0")
    for _ in range(30):
        page.keyboard.press("+")
    for _ in range(60):
        page.keyboard.press("-")
    x, y = where(page, "News 0")
    assert 0 < x < 1200 and 64 < y < 800
    assert "no known words" in page.locator("#card").inner_text()


def test_works_in_a_sandboxed_frame(open_map, file, tmp_path):
    parent = tmp_path / "parent.html"
    page = html.escape(file.read_text(encoding="utf-8"))
    frame = f'<iframe sandbox="allow-scripts" width="900" height="600" srcdoc="{page}"></iframe>'
    parent.write_text(frame, encoding="utf-8")
    page = open_map(parent)
    frame = page.frames[1]
    frame.locator("#search").fill("quiz 24")
    page.keyboard.press("Enter")
    assert frame.locator("#card h2").inner_text() == "Quiz 24"


@pytest.mark.parametrize(("width", "height"), [(375, 667), (1280, 800)])
def test_labels_are_inside_the_window_and_do_not_overlap_the_hint(
    open_map, plant_map, tmp_path, becomes, width, height
):
    path = tmp_path / "long.html"
    kinds = "News", "Football", "Cooking", "Crime", "Quiz"
    names = [f"{name} and quite long names · Tonight" for name in kinds]
    content = plant_map(800)  # too many for labels at the start: only clusters have labels
    spread = np.clip(content.xy * 1.4, -1, 1).astype(np.float32)
    path.write_text(
        render_map(dataclasses.replace(content, cluster_names=names, xy=spread)), encoding="utf-8"
    )
    page = open_map(path)
    page.set_viewport_size({"width": width, "height": height})
    becomes(page, "([width]) => innerWidth === width && guidespace.names().length > 3", [width])
    hint = page.evaluate("document.getElementById('map-hint').getBoundingClientRect().toJSON()")
    page.locator("#overlay").focus()
    beside = 0  # labels close to the hint
    for _ in range(8):
        for name in page.evaluate("guidespace.names()"):
            assert name["left"] >= 0 and name["right"] <= width, name
            assert name["top"] >= 0 and name["bottom"] <= height, name
            if hint["width"] and name["left"] < hint["right"] and name["right"] > hint["left"]:
                assert name["bottom"] <= hint["top"] or name["top"] >= hint["bottom"], name
                beside += name["bottom"] > hint["top"] - 60
        page.keyboard.press("ArrowUp")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert beside or not hint["width"]
    for title in ("News 50", "Quiz 24"):
        page.evaluate("title => guidespace.flyTo(title)", title)
        becomes(page, "title => guidespace.names().some(({ text }) => text === title)", title)
        for name in page.evaluate("guidespace.names()"):
            assert name["left"] >= 0 and name["right"] <= width, name
            assert name["top"] >= 0 and name["bottom"] <= height, name
