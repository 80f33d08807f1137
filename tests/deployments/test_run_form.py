"""The Run form in Chromium: another strategy is chosen and run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, Response, expect
from prefect.utilities.callables import parameter_schema
from pydantic import Field, TypeAdapter

from flows.settings import PRESETS
from storage.stages import ROOT
from tasks.form import configurable, setting, to_form_json
from tests.busy import ask_until_answered

if TYPE_CHECKING:
    from .conftest import Site

SUBMITTED = re.compile(r"/deployments/deployment/[-0-9a-f]+(\?.*)?$")
EPOCHS = "Number of epochs; an epoch shows every labelled training title once"
MAX_FORM_LEVELS = 20  # more than the form of the settings has

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

expect.set_options(timeout=30_000)  # the form is drawn by a server that may be at work for others


@pytest.fixture
def page(launched: Browser) -> Iterator[Page]:
    page = launched.new_page(viewport={"width": 1300, "height": 1000})
    yield page
    page.close()


def field(page: Page, text: str) -> Locator:
    """Returns the smallest part of the form that contains a text."""
    return page.locator(".schema-form-property", has_text=text).last


def open_settings(page: Page) -> None:
    """Shows all settings, which the form hides at first."""
    expect(page.locator(".schema-form-property").first).to_be_visible(timeout=60_000)
    assert page.locator("input, textarea").count() < 8
    page.get_by_role("button", name="Settings", exact=True).last.click()  # the first is in the side bar


def submit(page: Page) -> None:
    """Submits with the keyboard, because leaving a field may move the button away from the mouse.

    Each level of the form passes a changed value to the level above after a debounce of 10 ms. Timers of
    equal delay fire in the order in which they are set, so a chain of one timer per level ends last.
    """
    page.evaluate(f"""async () => {{
        for (let level = 0; level < {MAX_FORM_LEVELS}; level++)
            await new Promise(done => setTimeout(done, 10));
    }}""")
    button = page.get_by_role("button", name="Submit", exact=True)
    created = press(button)
    while created.status == 503:  # Prefect's answer while another process writes to its SQLite database
        page.wait_for_timeout(1_000)
        created = press(button)
    assert created.ok, created.text()
    expect(page).to_have_url(SUBMITTED)


def press(button: Locator) -> Response:
    """Presses Enter on the button; returns the response to the request for a flow run."""
    with button.page.expect_response(lambda response: response.url.endswith("/create_flow_run")) as created:
        button.press("Enter")
    return created.value


def choose(family: Locator, strategy: str) -> None:
    """Opens the tab of a strategy, and checks that this tab is open."""
    family.get_by_role("button", name=strategy, exact=True).click()
    expect(family.locator("button[aria-selected=true]")).to_have_text([strategy])


def test_another_strategy_is_chosen_and_run(page: Page, site: Site, tmp_path: Path) -> None:
    deployment = site.deployment("nightly-smoke")["id"]
    page.goto(f"{site.url}/deployments/deployment/{deployment}/run")
    open_settings(page)
    rules = page.locator(
        ".schema-form-property-any-of-input", has=page.get_by_role("button", name="SGD", exact=True)
    )  # parameter groups and descent have one too
    rule = rules.filter(has_text="How rows are updated from their gradients and state").last
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
    field(page, "XMLTV files, globs, folders").locator("textarea").first.fill(
        str(ROOT / "sample" / "guide.xml.gz")
    )
    field(page, EPOCHS).locator("input").fill("1")
    submit(page)

    query = {"deployments": {"id": {"any_": [deployment]}}, "sort": "EXPECTED_START_TIME_DESC", "limit": 20}
    (run,) = site.wait_until(
        lambda: [
            run for run in site.post("/flow_runs/filter", query) if run["parameters"].get("home") == str(home)
        ]
    )
    settings = run["parameters"]["settings"]
    assert settings["train"]["optimizer"] == {
        "strategy_adam": "adam",
        "learning_rate": 0.02,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
    }
    assert (settings["train"]["dim"], settings["train"]["epochs"]) == (PRESETS["laptop"].train.dim, 1)
    ended = site.wait(run["id"])
    assert ended["state_name"] == "Completed", site.logs(run["id"])
    assert (home / "latest.json").exists()


def test_a_value_out_of_bounds_is_refused_in_the_form(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/deployments/deployment/{site.deployment('nightly-smoke')['id']}/run")
    open_settings(page)
    field(page, EPOCHS).locator("input").fill("0")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_text("0 is less than the minimum of 1").first).to_be_visible(timeout=30_000)


@configurable
class Left:
    name: Literal["left"] = "left"
    rate: float = setting(0.1, "A rate of the left one", gt=0)


@configurable
class Right:
    name: Literal["right"] = "right"
    rate: float = setting(0.2, "A rate of the right one", gt=0)


@configurable
class Pair:
    chosen: Left | Right = setting(Right(), "One of two strategies with equal fields")
    several: list[Left | Right] = setting((Right(), Left()), "Some of them")


PAIR = Pair(chosen=Right(rate=0.3))


def pair_flow(pair: Pair = Field(PAIR, json_schema_extra={"default": to_form_json(asdict(PAIR))})) -> None:  # noqa: B008
    """Flow with strategies that have the same fields."""


def test_strategies_with_equal_fields_open_on_the_right_tab(page: Page, site: Site) -> None:
    flow = site.post("/flows/", {"name": "pair"})["id"]
    schema = parameter_schema(pair_flow).model_dump()
    about = {"name": "pair", "flow_id": flow, "parameter_openapi_schema": schema}
    deployment = site.post("/deployments/", about)["id"]
    page.goto(f"{site.url}/deployments/deployment/{deployment}/run")
    tabs = page.locator(".schema-form-property-any-of-input")
    expect(tabs.locator("button[aria-selected=true]")).to_have_text(["Right"], timeout=60_000)
    for strategy, values in {"Left": ["left", "0.1"], "Right": ["right", "0.3"]}.items():
        choose(tabs.first, strategy)
        assert [box.input_value() for box in tabs.first.locator("input, textarea").all()] == values
    choose(tabs.first, "Left")
    tabs.first.locator("input").first.fill("0.7")
    submit(page)
    query = {"deployments": {"id": {"any_": [deployment]}}}
    (run,) = site.wait_until(lambda: site.post("/flow_runs/filter", query))
    found = TypeAdapter(Pair).validate_python(run["parameters"]["pair"])
    assert found == Pair(chosen=Left(rate=0.7), several=[Right(), Left()])
    content = {
        "parameters": {"pair": {"chosen": {"name": "left", "rate": 0.4}}}
    }  # as other programs write it
    path = f"/deployments/{deployment}/create_flow_run"
    site.post(path, content)
    invalid = {"parameters": {"pair": {"chosen": {"nome": "left"}}}}
    refused = ask_until_answered(lambda: site.api.post(path, json=invalid))
    assert refused.status_code == 409
