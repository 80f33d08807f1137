"""Excerpts of descriptions on the card in Chromium."""

import dataclasses

from tasks.publish.map.page import render_map


def test_descriptions_are_text_on_the_card(open_map, plant_map, hostile_titles, tmp_path, where):
    markup = "Tom & Jerry <img src=x onerror='window.broken = 1'> <b>run</b> </p></script> &lt;"
    descriptions = [*hostile_titles, *[""] * 90, markup]
    described = dataclasses.replace(plant_map(100), descriptions=descriptions)
    file = tmp_path / "described.html"
    file.write_text(render_map(described), encoding="utf-8")
    page = open_map(file)
    for i in (0, 3, 4, 99):
        assert page.evaluate("title => guidespace.flyTo(title)", described.titles[i])
        assert page.locator("#card .description").text_content() == descriptions[i]
        assert page.locator("#card .description *").count() == 0
    assert page.evaluate("typeof window.broken") == "undefined"
    page.evaluate("guidespace.flyTo('Quiz 24')")
    assert page.locator("#card .description").count() == 0
    x, y = where(page, described.titles[99])
    page.mouse.move(x, y)
    assert page.locator("#hover .description").inner_text().startswith("Tom & Jerry <img src=x")
