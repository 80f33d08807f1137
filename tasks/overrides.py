"""Applies ``--set NAME=VALUE`` to settings.

This module imports no stage, so that a command imports only the stages that it needs.
"""

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from storage.errors import ExpectedError

SettingsT = TypeVar("SettingsT")


class SettingError(ExpectedError, ValueError):
    """Error: a ``--set`` is invalid. The message contains the assignment and the valid names or values."""


def override(settings: SettingsT, assignments: Sequence[str]) -> SettingsT:
    """Returns a copy of nested settings in which the assigned values are replaced.

    Args:
        settings: Dataclass whose fields are values or dataclasses.
        assignments: ``train.epochs=5``, ``train.optimizer=adam`` (a strategy with its defaults) or
            ``train.optimizer.learning_rate=0.01``. A value that is not valid JSON is used as a string.

    Raises:
        SettingError: A name is unknown, or a value is invalid.
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
                f"--set {assignment!r}: expected NAME=VALUE such as {example}; valid names: {names}"
            )
        previous_value, parent[key] = parent.get(key), text
        if isinstance(previous_value, dict) and "name" in previous_value:
            parent[key] = {"name": text}
            # Inserts the defaults of the strategy, because the next assignment may change one of them.
            with contextlib.suppress(ValidationError):
                values = dataclasses.asdict(adapter.validate_python(values))
        elif not isinstance(previous_value, str):
            with contextlib.suppress(ValueError):
                parent[key] = from_json(text)
    try:
        return adapter.validate_python(values)
    except ValidationError as error:
        names = " ".join(assignment.partition("=")[0].strip() for assignment in assignments)
        # without the original error, whose text may contain secrets
        raise SettingError(f"--set {names}: {_explain(error)}") from None


def _explain(error: ValidationError) -> str:
    """Formats up to four validation errors as one line, each with the path and value of the setting.

    For a setting that selects a strategy, only errors of the selected strategy are listed.
    """
    problems = error.errors()
    # pydantic validates a strategy against all classes; for the classes of other strategies, the name differs
    name_problems = [
        problem for problem in problems if problem["type"] == "literal_error" and problem["loc"][-1] == "name"
    ]
    other_strategies = {problem["loc"][:-1] for problem in name_problems}
    lines = {
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}{_format_input(problem)}"
        for problem in problems
        if not any(problem["loc"][: len(location)] == location for location in other_strategies)
    }
    if lines:
        return "; ".join(sorted(lines)[:4])
    valid_names = ", ".join(sorted(problem.get("ctx", {})["expected"] for problem in name_problems))
    setting = ".".join(map(str, problems[0]["loc"][:-2]))
    return f"{setting} is {problems[0]['input']!r}; valid names: {valid_names}"


def _format_input(problem: ErrorDetails) -> str:
    """Returns " (got VALUE)", or "" if the message contains the value or the value may be a secret."""
    is_hidden = problem["type"] == "value_error" or "headers" in problem["loc"]
    return "" if is_hidden else f" (got {problem['input']!r})"
