"""Tables of all settings, read from the dataclasses: ``guidespace settings`` and docs/settings.md."""

import dataclasses
import json
import typing
from collections.abc import Iterator
from typing import Any

from flows.settings import Settings
from tasks.overrides import SettingError

BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
PAGE = """\
<!-- Made by `guidespace settings --markdown > docs/settings.md`; a test holds it. -->
# Settings

`guidespace nightly --set NAME=VALUE …` changes a setting, as the Run form in the Prefect UI does. A strategy
is chosen by its name, `--set train.optimizer=adam`, and `--set train.optimizer.beta1=0.8` changes a setting
of its own.
"""


def list_settings(prefix: str = "") -> list[dict[str, Any]]:
    """Returns a row per setting in the order of the stages; only ``prefix`` and settings below it, if given.

    Raises:
        SettingError: No setting has this prefix.
    """
    beginnings = (f"{prefix}.", f"{prefix} (") if prefix else ("",)
    rows = [row for row in _rows(Settings(), "") if f"{row['name']}.".startswith(beginnings)]
    if not rows:
        stages = ", ".join(field.name for field in dataclasses.fields(Settings))
        raise SettingError(f"no setting is named {prefix!r}; known are {stages} and what is below them")
    return rows


def setting_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Formats rows as text, two lines per setting."""
    for row in rows:
        bounds = f", {row['bounds']}" if row["bounds"] else ""
        yield f"{row['name']} = {_json(row['default'])}   ({row['type']}{bounds})\n    {row['description']}"


def markdown_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Formats rows as docs/settings.md: a table per stage and per family of strategies."""
    yield PAGE
    tables: dict[str, list[str]] = {}
    for row in rows:
        family, is_strategy, _ = row["name"].partition(" (")
        heading = family if is_strategy else family.split(".")[0]
        code = (f"`{row['name']}`", row["type"], f"`{_json(row['default'])}`")
        line = " | ".join(cell.replace("|", "\\|") for cell in (*code, row["bounds"], row["description"]))
        tables.setdefault(heading, []).append(f"| {line} |")
    for heading, lines in tables.items():
        yield f"## {heading}\n\n| setting | type | default | bounds | what |\n| --- | --- | --- | --- | --- |"
        yield "\n".join(lines) + "\n"


def _rows(settings: Any, prefix: str) -> Iterator[dict[str, Any]]:
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        name, value, hint = f"{prefix}{field.name}", getattr(settings, field.name), hints[field.name]
        about, strategies = field.metadata, [kind() for kind in members(hint) if hasattr(kind, "name")]
        if field.name == "name" and typing.get_origin(hint) is typing.Literal:
            continue  # the name of a strategy, under which its fields are listed
        if dataclasses.is_dataclass(value) and not strategies:
            yield from _rows(value, f"{name}.")
            continue
        yield {
            "name": name,
            "type": " | ".join(strategy.name for strategy in strategies) or _words(hint),
            "default": getattr(value, "name", _plain(value)) if strategies else _plain(value),
            "bounds": ", ".join(f"{words} {about[key]:,}" for key, words in BOUNDS.items() if key in about),
            "description": str(about.get("description", "")),
        }
        for strategy in strategies:
            yield from _rows(strategy, f"{name} ({strategy.name}).")


def members(hint: Any) -> Iterator[Any]:
    """Yields the dataclasses in a union, or in a tuple of a union."""
    if dataclasses.is_dataclass(hint):
        yield hint
    for argument in typing.get_args(hint):
        yield from members(argument)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(type(value)) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _words(hint: Any) -> str:
    """Formats a type: ``int``, ``float | null``, ``list of str``, ``"auto" | "exact"``."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(json.dumps, arguments))
    if typing.get_origin(hint) in (tuple, list):
        return f"list of {_words(arguments[0])}"
    if arguments:
        return " | ".join("null" if argument is type(None) else _words(argument) for argument in arguments)
    if dataclasses.is_dataclass(hint):
        return "{" + ", ".join(field.name for field in dataclasses.fields(hint)) + "}"
    return getattr(hint, "__name__", str(hint))
