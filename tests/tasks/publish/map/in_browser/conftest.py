"""The synthetic map in Chromium."""

import time
from pathlib import Path

import pytest

from tasks.publish.map.page import render_map

TIMEOUT_SECONDS = 20.0  # a busy machine draws frames late


@pytest.fixture(scope="module")
def browser(launched):
    """One context for all tests; one per test would take three times as long."""
    return launched.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")


@pytest.fixture(scope="session")
def content(plant_map, hostile_titles):
    return plant_map(100, hostile_titles)


@pytest.fixture(scope="session")
def file(content, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("map") / "map.html"
    path.write_text(render_map(content), encoding="utf-8")
    return path


@pytest.fixture
def open_map(browser, file):
    """Opens a file in a new page; checks that there were no errors and no requests to the network."""
    pages, errors, requests = [], [], []

    def open_(path: Path = file, script: str = "", color_scheme: str = "light", link: str = ""):
        page = browser.new_page()
        pages.append(page)
        page.emulate_media(color_scheme=color_scheme)
        page.set_default_timeout(TIMEOUT_SECONDS * 1000)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        if script:
            page.add_init_script(script)
        page.goto(path.as_uri() + link)
        return page

    yield open_
    for page in pages:
        page.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "about:"))] == []
    assert len([url for url in requests if url.startswith("file:")]) == len(pages)


@pytest.fixture
def page(open_map):
    return open_map()


@pytest.fixture(scope="session")
def where():
    """``where(page, title)``: window coordinates of a title's point."""

    def where_(page, title: str) -> tuple[float, float]:
        at = page.evaluate("title => guidespace.where(title)", title)
        return at["x"], at["y"]

    return where_


@pytest.fixture(scope="session")
def becomes():
    """``becomes(page, expression, arg)`` waits until an expression is true.

    The wait of the browser driver evaluates text in the page, which the policy of the map forbids.
    """

    def becomes_(page, expression: str, arg: object = None) -> None:
        end = time.monotonic() + TIMEOUT_SECONDS
        while not page.evaluate(expression, arg):
            assert time.monotonic() < end, f"{expression} did not hold within {TIMEOUT_SECONDS:.0f} s"
            page.wait_for_timeout(20)

    return becomes_
