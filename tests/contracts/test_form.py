"""The law of every family: the Run form of Prefect's UI can tell its strategies apart.

A family is a plain union, shown as tabs. Which tab a value belongs to the form decides by counting the value's fields
among those of each strategy, the first of the largest count winning (the constant in ``name`` is not looked at; seen in
prefect 3.8.8). So the strategies of a family need different sets of fields, the smaller of two nested ones listed first;
else choosing a strategy leaves another one's tab open, or does not choose it at all.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Iterator

import pytest

from flows.settings import Settings
from tests.contracts.families import families, members

FAMILIES = dict(families(Settings))


def names(strategy: type) -> set[str]:
    return {field.name for field in dataclasses.fields(strategy)}


def test_there_are_families() -> None:
    assert {"settings.train.rule", "settings.train.objective", "settings.tokenize.tokenizer", "settings.cluster.strategy", "settings.evaluate.baselines"} <= FAMILIES.keys()


@pytest.mark.parametrize("path", FAMILIES)
def test_strategies_differ_in_fields(path: str) -> None:
    for earlier, later in itertools.combinations(FAMILIES[path], 2):
        told_apart = not names(later) <= names(earlier)
        assert told_apart, f"{path}: every field of {later.__name__} is one of {earlier.__name__}, listed before it: list it first, or name its fields for what they are"


@pytest.mark.parametrize("path", FAMILIES)
def test_every_strategy_has_its_own_constant_name(path: str) -> None:
    constants = [strategy().name for strategy in FAMILIES[path]]
    assert len(set(constants)) == len(constants)
    assert all(typing.get_args(typing.get_type_hints(strategy)["name"]) == (strategy().name,) for strategy in FAMILIES[path])


def described(settings: type, path: str = "settings") -> Iterator[tuple[str, str]]:
    """Path and description of every field that a person can set."""
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        if field.name != "name":
            yield f"{path}.{field.name}", str(field.metadata.get("description", ""))
        for kind in members(hints[field.name]):
            if dataclasses.is_dataclass(kind):
                yield from described(kind, f"{path}.{field.name}[{kind.__name__}]")


def test_every_field_is_described_in_words_that_the_form_can_show() -> None:
    for path, text in described(Settings):
        assert len(text) > 10, f"{path}: what is it for?"
        assert "<" not in text, f"{path}: the form reads {text!r} as HTML and swallows what is between angle brackets"
