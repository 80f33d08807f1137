"""Applies ``--set NAME=VALUE`` to settings. Imports no stage, so a command loads only the stages it needs."""

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from storage.errors import ExpectedError

SettingsT = TypeVar("SettingsT")


class SettingError(ExpectedError, ValueError):
    """An invalid ``--set``; the message contains it and the valid names."""


def override(settings: SettingsT, assignments: Sequence[str]) -> SettingsT:
    """Replaces values of nested settings.

    Args:
        settings: Dataclass of dataclasses.
        assignments: ``train.epochs=5``, ``train.optimizer=adam`` (a strategy with its defaults) or
            ``train.optimizer.learning_rate=0.01``. A value that is not valid JSON is text.

    Raises:
        SettingError: A name is unknown, or a value is out of bounds.
    """
    if not assignments:
        return settings
    values = dataclasses.asdict(settings)  # pyright: ignore[reportArgumentType]
    adapter: TypeAdapter[Any] = TypeAdapter(type(settings))
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        *parents, key = path.strip().split(".")
        parent: Any = values
        for name in parents:
            parent = parent.get(name) if isinstance(parent, dict) else None
        if not separator or not isinstance(parent, dict) or (key not in parent and "name" not in parent):
            names = ", ".join(sorted(parent if isinstance(parent, dict) else values))
            example = "train.epochs=5" if "train" in values else "ingest.batch_rows=1000"
            raise SettingError(
                f"--set {assignment!r}: expected NAME=VALUE such as {example}; known here: {names}"
            )
        previous_value, parent[key] = parent.get(key), text
        if isinstance(previous_value, dict) and "name" in previous_value:
            parent[key] = {"name": text}
            with contextlib.suppress(ValidationError):  # inserts defaults, which may contain strategies
                values = dataclasses.asdict(adapter.validate_python(values))
        elif not isinstance(previous_value, str):
            with contextlib.suppress(ValueError):
                parent[key] = from_json(text)
    try:
        return adapter.validate_python(values)
    except ValidationError as error:
        names = " ".join(assignment.partition("=")[0].strip() for assignment in assignments)
        raise SettingError(f"--set {names}: {_explain(error)}") from None  # pydantic shows secrets


def _explain(error: ValidationError) -> str:
    """Formats up to four problems as one line, each with its path and value.

    For a setting that selects a strategy, only problems of the selected strategy are listed.
    """
    problems = error.errors()
    other_names = [item for item in problems if item["type"] == "literal_error" and item["loc"][-1] == "name"]
    other_locations = {item["loc"][:-1] for item in other_names}
    lines = {
        f"{'.'.join(map(str, item['loc']))}: {item['msg']}{_input_of(item)}"
        for item in problems
        if not any(item["loc"][: len(location)] == location for location in other_locations)
    }
    if lines:
        return "; ".join(sorted(lines)[:4])
    expected = ", ".join(sorted(item.get("ctx", {})["expected"] for item in other_names))
    return f"{'.'.join(map(str, problems[0]['loc'][:-2]))} is {problems[0]['input']!r}; known are {expected}"


def _input_of(problem: ErrorDetails) -> str:
    """Returns the value unless the message contains it or it may be a secret."""
    hidden = problem["type"] == "value_error" or "headers" in problem["loc"]
    return "" if hidden else f" (got {problem['input']!r})"
