"""A person in the Prefect UI: opens the Run form in Chromium, chooses another strategy, runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from storage.stages import ROOT

if TYPE_CHECKING:
    from .conftest import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

expect.set_options(timeout=30_000)  # the form is drawn by a server that may be at work for others


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        yield browser.new_page(viewport={"width": 1300, "height": 1000})
        browser.close()


def field(page: Page, text: str) -> Locator:
    """The smallest part of the form that holds that text."""
    return page.locator(".schema-form-property", has_text=text).last


def choose(family: Locator, strategy: str) -> None:
    """Opens the tab of a strategy, and sees that it is the one that is open."""
    family.get_by_role("button", name=strategy, exact=True).click()
    expect(family.locator("button[aria-selected=true]")).to_have_text([strategy])


def test_another_strategy_is_chosen_and_run(page: Page, site: Site, tmp_path: Path) -> None:
    deployment = site.deployment("nightly-smoke")["id"]
    page.goto(f"{site.url}/deployments/deployment/{deployment}/run")
    rules = page.locator(".schema-form-property-any-of-input", has=page.get_by_role("button", name="SGD", exact=True))  # parameter groups and descent have one too
    rule = rules.filter(has_text="How a row moves, given its gradient and its state").last
    expect(rule.locator("button[aria-selected=true]")).to_have_text(["RowwiseAdagrad"], timeout=60_000)

    for strategy, values in {
        "SGD": ["sgd", "500"],
        "Adagrad": ["adagrad", "0.05", "1e-10", "0"],
        "RowwiseAdagrad": ["rowwise_adagrad", "0.07", "1e-10"],
        "Adam": ["adam", "0.1", "0.9", "0.999", "1e-8"],
    }.items():
        choose(rule, strategy)
        assert [box.input_value() for box in rule.locator("input, textarea").all()] == values
    rule.locator("input").first.fill("0.02")

    home = tmp_path / "home"
    field(page, "Folder that holds everything a run writes").locator("textarea").fill(str(home))
    field(page, "XMLTV files, globs, folders").locator("textarea").first.fill(str(ROOT / "sample" / "guide.xml.gz"))
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page).to_have_url(re.compile(r"/deployments/deployment/[-0-9a-f]+(\?.*)?$"), timeout=90_000)

    query = {"deployments": {"id": {"any_": [deployment]}}, "sort": "EXPECTED_START_TIME_DESC", "limit": 20}
    (run,) = site.wait_until(lambda: [run for run in site.post("/flow_runs/filter", query) if run["parameters"].get("home") == str(home)], 90)
    settings = run["parameters"]["settings"]
    assert settings["train"]["rule"] == {"name": "adam", "learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    assert (settings["train"]["dim"], settings["train"]["epochs"]) == (32, 2)  # what the deployment says stays
    ended = site.wait(run["id"])
    assert ended["state_name"] == "Completed", site.logs(run["id"])
    assert (home / "latest.json").exists()


def test_a_value_out_of_bounds_is_refused_in_the_form(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/deployments/deployment/{site.deployment('nightly-smoke')['id']}/run")
    field(page, "How often every labelled training title is shown").locator("input").fill("0")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_text("0 is less than the minimum of 1").first).to_be_visible(timeout=30_000)
