"""The command ``guidespace settings``: every setting with type, default, bounds and description, read off the dataclasses."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from flows.assignments import SettingError
from flows.settings import Settings

BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def list_settings(beginning: str = "") -> list[dict[str, Any]]:
    """A row a setting, in the order of the stages: ``name``, ``type``, ``default``, ``bounds``, ``description``.

    Args:
        beginning: Only settings of that name and below it, such as ``train`` or ``train.rule``.

    Raises:
        SettingError: No setting begins with it.
    """
    rows = list(_rows(Settings(), ""))
    chosen = [row for row in rows if f"{row['name']}.".startswith(f"{beginning}.".lstrip(".")) or f"{row['name']} ".startswith(f"{beginning} (")]
    if not chosen:
        raise SettingError(f"no setting is named {beginning!r}; known are {', '.join(field.name for field in dataclasses.fields(Settings))} and what is below them")
    return chosen


def setting_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Rows as text: two lines a setting."""
    for row in rows:
        bounds = f", {row['bounds']}" if row["bounds"] else ""
        yield f"{row['name']} = {json.dumps(row['default'], ensure_ascii=False)}   ({row['type']}{bounds})"
        yield f"    {row['description']}"


def _rows(settings: Any, prefix: str) -> Iterator[dict[str, Any]]:
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        name, metadata = f"{prefix}{field.name}", field.metadata
        value: Any = getattr(settings, field.name)
        strategies: list[Any] = [kind for kind in _members(hints[field.name]) if dataclasses.is_dataclass(kind)]
        named: list[Any] = [kind for kind in strategies if "name" in {each.name for each in dataclasses.fields(kind)}]
        if field.name == "name" and typing.get_origin(hints["name"]) is typing.Literal:
            continue  # of a strategy: it stands in the rows of its fields
        if dataclasses.is_dataclass(value) and not named:
            yield from _rows(value, f"{name}.")
            continue
        default = getattr(value, "name", _plain(value)) if named else _plain(value)
        kind = " | ".join(strategy().name for strategy in named) if named else _words(hints[field.name])
        yield {"name": name, "type": kind, "default": default, "bounds": _bounds(metadata), "description": str(metadata.get("description", ""))}
        for strategy in named:
            yield from _rows(strategy(), f"{name} ({strategy().name}).")


def _plain(value: Any) -> Any:
    """A default as JSON."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def _bounds(metadata: Mapping[str, Any]) -> str:
    return ", ".join(f"{words} {metadata[key]:,}" for key, words in BOUNDS.items() if key in metadata)


def _members(hint: Any) -> Iterator[type]:
    """Classes in a union, also in a tuple of a union."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) in (typing.Union, tuple):
        for argument in typing.get_args(hint):
            yield from _members(argument)
    elif isinstance(hint, type):
        yield hint


def _words(hint: Any) -> str:
    """A type in words: ``int``, ``float | None``, ``list of str``, ``"auto" | "exact"``."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(json.dumps(each) for each in arguments)
    if typing.get_origin(hint) in (tuple, list):
        return f"list of {_words(arguments[0])}"
    if arguments:
        return " | ".join("null" if each is type(None) else _words(each) for each in arguments)
    if dataclasses.is_dataclass(hint):
        return "{" + ", ".join(field.name for field in dataclasses.fields(hint)) + "}"
    return getattr(hint, "__name__", str(hint))
