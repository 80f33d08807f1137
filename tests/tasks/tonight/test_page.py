"""The page in Chromium: time line, reasons and saved choices."""

import datetime
import json
import re
from pathlib import Path

import pytest

from tasks.likes.tables import read_likes_table
from tasks.tonight.choose import LikedPerson
from tasks.tonight.page import render_tonight
from tests.tasks.tonight.evenings import EVENING, LATER, at, recommendation

pytestmark = pytest.mark.slow

HOSTILE = "</script><img src=x onerror=alert(1)> & “\u2028” {{data}}"


@pytest.fixture(scope="module")
def browser(launched):
    return launched.new_context(
        viewport={"width": 1200, "height": 800},
        locale="en-GB",
        timezone_id="Europe/Berlin",
        accept_downloads=True,
    )


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a list as a page; asserts at the end that there were no errors and no requests."""
    complaints, requests, pages = [], [], []

    def open_(found, viewer="Ann", link="", scheme="light", zone=""):
        file = tmp_path / "tonight.html"
        file.write_text(render_tonight(found, viewer, EVENING, at("24:00"), zone), encoding="utf-8")
        page = browser.new_page()
        pages.append(page)
        page.emulate_media(color_scheme=scheme)
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri() + link)
        return page

    yield open_
    for page in pages:
        page.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


FOUND = [
    recommendation(
        1, sub_title="Dark Road", episode="s1e2", description="A body.", categories=("Crime",), also=(LATER,)
    ),
    recommendation(2, start=at("18:30"), stop=None, channel="Zwei"),
    recommendation(3, title=HOSTILE, start=at("23:00"), stop=at("25:00")),
]


def test_times_are_in_the_zone_of_the_browser(open_page):
    page = open_page(FOUND)
    assert page.locator("h1").inner_text() == "Tonight for Ann"
    assert page.locator("#when").inner_text() == "Wednesday, 14 January 2026, 19:00 to 01:00"
    assert page.locator(".time").all_inner_texts() == ["21:15", "19:30", "00:00"]
    lines = [line for line in page.locator(".programme").first.inner_text().split("\n") if line]
    assert lines[:6] == ["21:15", "One", "1Show 1", "Dark Road", "A body.", "Crime"]
    assert page.locator(".also").all_inner_texts() == ["Also 22:15 One +1"]
    assert page.locator(".hour").first.inner_text() == "19:00"
    left = [page.locator(".slot", has_text=f"Show {n}").bounding_box()["x"] for n in (2, 1)]
    assert left == sorted(left)
    tops = {slot.bounding_box()["y"] for slot in page.locator(".slot").all()}
    assert len(tops) == 1  # nothing overlaps: one lane


def test_simultaneous_programmes_have_separate_lanes(open_page):
    page = open_page([recommendation(n) for n in range(1, 5)])
    boxes = [slot.bounding_box() for slot in page.locator(".slot").all()]
    assert len({box["y"] for box in boxes}) == 4 and len({box["x"] for box in boxes}) == 1
    panel = page.locator("#evening").bounding_box()
    assert max(box["y"] + box["height"] for box in boxes) < panel["y"] + panel["height"]


def test_each_programme_has_a_reason(open_page):
    why = open_page(FOUND).locator(".programme").first.locator(".why")
    assert "Because you like" in why.inner_text()
    assert re.sub(r"\s+", " ", why.inner_text()).endswith("90 % Midsomer Murders 10 % Newsnight")
    assert why.locator(".disliked").all_inner_texts() == ["Newsnight"]


def test_states_ratings_and_people_are_shown_and_the_icon_is_only_a_link(open_page):
    people = (
        LikedPerson(name="Angela L.", role="actor", title="Murder, She Wrote"),
        LikedPerson(name="John F.", role="director", title="Ronin"),
    )
    icon = "https://icons.example/x.png"
    found = [
        recommendation(1, is_premiere=True, is_new=True, ratings=("FSK 12",), people=people, icon=icon),
        recommendation(2, is_repeat=True, icon="javascript:alert(1)"),
    ]
    page = open_page(found)
    first, second = (page.locator(".programme").nth(number) for number in (0, 1))
    assert first.locator(".state").all_inner_texts() == ["premiere", "FSK 12"]
    lines = ["With Angela L., as in Murder, She Wrote", "Directed by John F., as in Ronin"]
    assert first.locator(".people").all_inner_texts() == lines
    assert first.locator("a.picture").get_attribute("href") == icon
    assert second.locator(".state").all_inner_texts() == ["repeat"]
    assert second.locator("a.picture").count() == 0
    boxes = [box.bounding_box() for box in first.locator(".chip").all()]
    assert all(box["width"] > box["height"] for box in boxes)  # no text outside


def test_a_page_of_a_viewer_with_a_zone_has_its_times(open_page):
    page = open_page(FOUND, zone="America/New_York")  # the browser is in Berlin
    assert page.locator("#when").inner_text() == "Wednesday, 14 January 2026, 13:00 to 19:00"
    assert page.locator(".time").all_inner_texts() == ["15:15", "13:30", "18:00"]


def test_titles_are_escaped(open_page):
    page = open_page(FOUND, viewer=HOSTILE)
    assert page.locator("h1").text_content() == f"Tonight for {HOSTILE}"
    assert page.locator("h2").nth(2).text_content() == f"3{HOSTILE}"
    assert page.locator("img").count() == 0


def test_choices_are_saved_as_a_file_that_the_command_reads(open_page, tmp_path):
    page = open_page(FOUND)
    assert page.locator("#choices").is_hidden()
    page.get_by_role("button", name="Like Show 1", exact=True).click()
    page.get_by_role("button", name="Dislike Show 2", exact=True).click()
    page.get_by_role("button", name="Like Show 2", exact=True).click()  # a change of mind
    page.get_by_role("button", name="Dislike Show 2", exact=True).click()
    assert page.locator("#count").inner_text() == "2 choices."
    assert page.locator("#command").inner_text() == "guidespace like --from likes.json"
    with page.expect_download() as download:
        page.get_by_role("button", name="Save likes.json").click()
    assert download.value.suggested_filename == "likes.json"
    download.value.save_as(tmp_path / "likes.json")
    rows = json.loads((tmp_path / "likes.json").read_text(encoding="utf-8"))
    assert [(row["viewer"], row["title"], row["liked"]) for row in rows] == [
        ("Ann", "Show 1", True),
        ("Ann", "Show 2", False),
    ]
    stored = read_likes_table(tmp_path / "likes.json", "nobody", EVENING, datetime.UTC).to_pylist()
    assert [
        (row["viewer"], row["show_key"], row["episode"], row["value"], row["seen"]) for row in stored
    ] == [
        ("Ann", "show 1", "s1e2", 1.0, False),
        ("Ann", "show 2", "", -1.0, False),
    ]


def test_a_link_opens_the_page_with_the_choices(open_page):
    page = open_page(FOUND)
    page.get_by_role("button", name="Like Show 1", exact=True).click()
    page.get_by_role("button", name="Dislike Show 2", exact=True).click()
    link = page.evaluate("location.hash")
    assert link == page.evaluate("guidespace.link()") == "#like=1&dislike=2"
    again = open_page(FOUND, link=link)
    assert [row["liked"] for row in again.evaluate("guidespace.handBack()")] == [True, False]
    again.get_by_role("button", name="Clear").click()
    assert again.locator("#choices").is_hidden() and again.evaluate("guidespace.link()") == "#"


@pytest.mark.parametrize("link", ["#like=99&dislike=x", "#__proto__=1", "#like=%E0%A4%A"])
def test_invalid_links_are_ignored(open_page, link):
    page = open_page(FOUND, link=link)
    assert page.evaluate("guidespace.handBack()") == [] and page.locator(".programme").count() == 3


def test_a_page_without_a_viewer_needs_a_name(open_page):
    page = open_page(FOUND, viewer="")
    page.get_by_role("button", name="Like Show 1", exact=True).click()
    assert page.locator("#command").inner_text() == "guidespace like --from likes.json --viewer NAME"
    assert "viewer" not in page.evaluate("guidespace.handBack()")[0]


def test_an_empty_list_shows_a_message(open_page):
    page = open_page([])
    assert page.locator("#empty").is_visible() and page.locator("#evening").is_hidden()


def test_dark_colours_follow_the_machine_and_the_button(open_page):
    page = open_page(FOUND, scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Light colours").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_page_fits_the_screen_of_a_phone(open_page):
    page = open_page(FOUND)
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_title_of_half_a_character_can_be_written(tmp_path: Path):
    page = render_tonight([recommendation(title="\ud800")], "", EVENING, at("24:00"))
    (tmp_path / "x.html").write_text(page, encoding="utf-8")
    assert "\ufffd" in page
