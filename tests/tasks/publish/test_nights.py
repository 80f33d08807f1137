"""The page of the last nights: promotions, gaps, metrics and escaped names."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from storage.tracking.nights import Night
from tasks.publish.nights.page import promotion_flags, render_nights

FIRST = datetime(2026, 10, 1, 3, 30, tzinfo=UTC)
EVIL = "</script><b>“R&B” \ud800"


def night(number, version, champion, **metrics):
    return Night(
        at=FIRST + timedelta(days=number),
        name=f"night {number} {EVIL}",
        run=f"{number:032x}",
        finished=True,
        model="",
        version=version,
        champion=champion,
        reason="better than the champion" if champion else "worse than the champion",
        metrics={"at_a_glance/quality": 0.5 + number / 100, "clusters/count": 40.0, **metrics},
    )


NIGHTS = [
    night(0, "1", True),
    night(1, "2", False, **{"drift/neighbours_stayed": 0.8}),
    night(2, "3", True, **{"drift/neighbours_stayed": 0.7}),
    night(3, "3", True, **{"drift/neighbours_stayed": 1.0}),  # the same model again
    night(4, "4", True, **{"drift/neighbours_stayed": float("nan")}),
]


def test_a_promotion_is_a_new_champion():
    assert promotion_flags(NIGHTS) == [True, False, True, False, True]
    assert promotion_flags([]) == []


def test_page_contains_all_metrics_with_gaps_and_escaped_names():
    page = render_nights(NIGHTS, EVIL)
    assert page.count("</script>") == 2 and "<b>" not in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["metrics"]["drift/neighbours_stayed"] == [None, 0.8, 0.7, 1.0, None]
    assert set(data["metrics"]) == {"at_a_glance/quality", "clusters/count", "drift/neighbours_stayed"}
    assert [name for name, *_ in data["shown"]] == ["at_a_glance/quality", "drift/neighbours_stayed"]
    assert [night["promoted"] for night in data["nights"]] == promotion_flags(NIGHTS)
    page.encode()


@pytest.mark.slow
def test_selecting_a_metric_and_a_night(launched, tmp_path):
    file = tmp_path / "nights.html"
    file.write_text(render_nights(NIGHTS, "Nights of home"), encoding="utf-8")
    page = launched.new_page(viewport={"width": 1200, "height": 900})
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    assert page.locator("#span").inner_text() == "5 nights, 2026-10-01 to 2026-10-05, 3 promotions"
    assert page.locator("#large .promotion").count() == 3 and page.locator("#large .night").count() == 2
    page.locator("#metric").select_option("drift/neighbours_stayed")
    assert page.locator("#large .promotion").count() == 1 and page.locator("#large .night").count() == 2
    page.locator("#large .hit").nth(1).hover()
    status = page.locator("#status").inner_text()
    assert "2026-10-02 03:30" in status and "0.800" in status and "worse than the champion" in status
    page.locator(".card").first.click()
    assert page.locator("#metric").input_value() == "at_a_glance/quality"
    assert page.locator("#rows tr").count() == 5 and page.locator(".badge").count() == 3
    assert "night 4" in page.locator("#rows tr").first.inner_text()
    page.set_viewport_size({"width": 380, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    empty = tmp_path / "none.html"
    empty.write_text(render_nights([], "Nights of home"), encoding="utf-8")
    page.goto(empty.as_uri())
    assert "No night has finished yet" in page.locator("main").inner_text()
    assert not problems
