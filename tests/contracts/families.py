"""The families of strategies that the settings hold: every union of dataclasses."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator


def families(settings: type, path: str = "settings") -> Iterator[tuple[str, tuple[type, ...]]]:
    """Path and strategies of every union of dataclasses below a settings class."""
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        kinds = [kind for kind in members(hints[field.name]) if dataclasses.is_dataclass(kind)]
        if len(kinds) > 1:
            yield f"{path}.{field.name}", tuple(kinds)
        for kind in kinds:
            yield from families(kind, f"{path}.{field.name}")


def members(hint: object) -> Iterator[type]:
    """Classes in a union, also in a tuple of a union."""
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) in (typing.Union, tuple):
        for argument in arguments:
            yield from members(argument)
    elif isinstance(hint, type):
        yield hint
