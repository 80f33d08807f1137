"""Against the museum: every strategy of every family is used by a preset or compared by name (design, rule 9)."""

from __future__ import annotations

import dataclasses
import types
import typing

from flows.presets import COMPARED, PRESETS
from flows.settings import Settings


def members(hint):
    """Classes named in a type hint, unions and tuples taken apart."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return {hint}
    return set().union(*(members(argument) for argument in typing.get_args(hint))) if typing.get_args(hint) else set()


def strategies(settings, seen=()):
    """Every dataclass with a ``name`` that a field of the settings may hold."""
    found = set()
    for hint in typing.get_type_hints(settings).values():
        for kind in members(hint):
            if dataclasses.is_dataclass(kind) and kind not in seen:
                found |= ({kind} if "name" in kind.__dataclass_fields__ else set()) | strategies(kind, (*seen, kind))
    return found


def used(value):
    """Every dataclass type within a value."""
    if isinstance(value, tuple | list):
        return set().union(*(used(item) for item in value)) if value else set()
    if dataclasses.is_dataclass(value):
        return {type(value)}.union(*(used(getattr(value, field.name)) for field in dataclasses.fields(value)))
    return set()


def test_every_strategy_has_a_caller():
    known = strategies(Settings)
    assert len(known) > 10 and all(isinstance(kind, type) and not isinstance(kind, types.GenericAlias) for kind in known)
    called = set().union(*(used(preset) for preset in PRESETS.values()), *(used(values) for values in COMPARED.values()))
    assert not (idle := {kind.__name__ for kind in known - called}), f"no preset and no comparison uses {idle}: add them to flows/presets.py or delete them"
