"""The law of every family: the Run form of Prefect's UI can tell its strategies apart.

A family is a plain union, shown as tabs. The form chooses a value's tab by its keys (tasks/form.py), so each
strategy has one that no other has; tests/deployments/test_run_form.py shows in Chromium that this works.
"""

import dataclasses
import typing
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter

from flows.cli.settings import find_dataclasses
from flows.refresh import RefreshSettings
from flows.settings import Settings
from tasks.form import to_form_json
from tests.contracts.families import families

FAMILIES = dict(families(Settings)) | dict(families(RefreshSettings, "refresh"))


def test_there_are_families() -> None:
    assert {
        "settings.train.optimizer",
        "settings.train.objective",
        "settings.tokenize.tokenizer",
        "settings.cluster.strategy",
        "settings.evaluate.baselines",
        "refresh.enrich.players",
    } <= FAMILIES.keys()


@pytest.mark.parametrize("path", FAMILIES)
def test_each_strategy_has_a_unique_key_in_the_form(path: str) -> None:
    properties = {kind: TypeAdapter(kind).json_schema()["properties"] for kind in FAMILIES[path]}
    for kind, own in properties.items():
        key = f"strategy_{kind().name}"
        assert own[key]["const"] == own[key]["default"] == kind().name
        assert not any(key in others for other, others in properties.items() if other is not kind)


@pytest.mark.parametrize("path", FAMILIES)
def test_a_strategy_is_found_by_that_key_and_by_its_name(path: str) -> None:
    family = TypeAdapter(typing.Union[FAMILIES[path]])  # noqa: UP007
    for kind in FAMILIES[path]:
        name = kind().name
        for chosen in ({"name": name}, {f"strategy_{name}": name}):
            assert family.validate_python(chosen) == kind()


def test_strategy_names_become_keys_at_any_depth() -> None:
    value = {"name": "outer", "rate": 1, "several": ({"name": "inner"}, 2), "groups": {"name": 3}}
    assert to_form_json(value) == {
        "strategy_outer": "outer", "rate": 1, "groups": {"name": 3},
        "several": [{"strategy_inner": "inner"}, 2],
    }  # fmt: skip


def described(settings: type, path: str = "settings") -> Iterator[tuple[str, str]]:
    """Returns the path and description of every field that a person can set."""
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        if field.name != "name":
            yield f"{path}.{field.name}", str(field.metadata.get("description", ""))
        for kind in find_dataclasses(hints[field.name]):
            yield from described(kind, f"{path}.{field.name}[{kind.__name__}]")


def test_every_field_is_described_in_words_that_the_form_can_show() -> None:
    for path, text in described(Settings):
        assert len(text) > 10, f"{path}: what is it for?"
        assert "<" not in text, (
            f"{path}: the form reads {text!r} as HTML and swallows what is between angle brackets"
        )
