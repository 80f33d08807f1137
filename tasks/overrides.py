"""``--set NAME=VALUE``. Imports no stage, so that a command loads only those it needs."""

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from storage.errors import ExpectedError

S = TypeVar("S")


class SettingError(ExpectedError, ValueError):
    """A ``--set`` that cannot be; the message names it and what is known."""


def override(settings: S, assignments: Sequence[str]) -> S:
    """Settings, dataclasses within a dataclass, with some values replaced: ``train.epochs=5``,
    ``train.optimizer=adam`` (a strategy by name, its own values at their defaults) or
    ``train.optimizer.learning_rate=0.01``. A value is JSON where it can be, else text.

    Raises:
        SettingError: An unknown name, or a value out of bounds.
    """
    if not assignments:
        return settings
    values = dataclasses.asdict(settings)  # pyright: ignore[reportArgumentType]
    adapter: TypeAdapter[Any] = TypeAdapter(type(settings))
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        *parents, last = path.strip().split(".")
        parent: Any = values
        for name in parents:
            parent = parent.get(name) if isinstance(parent, dict) else None
        if not separator or not isinstance(parent, dict) or (last not in parent and "name" not in parent):
            known = ", ".join(sorted(parent if isinstance(parent, dict) else values))
            example = "train.epochs=5" if "train" in values else "ingest.workers=2"
            expected = f"expected NAME=VALUE such as {example}; known here: {known}"
            raise SettingError(f"--set {assignment!r}: {expected}")
        before, parent[last] = parent.get(last), text
        if isinstance(before, dict) and "name" in before:
            parent[last] = {"name": text}
            with contextlib.suppress(ValidationError):  # its values, some of which may be strategies, too
                values = dataclasses.asdict(adapter.validate_python(values))
        elif not isinstance(before, str):
            with contextlib.suppress(ValueError):
                parent[last] = from_json(text)
    try:
        return adapter.validate_python(values)
    except ValidationError as error:
        names = " ".join(assignment.partition("=")[0].strip() for assignment in assignments)
        raise SettingError(f"--set {names}: {_explain(error)}") from None  # pydantic shows secrets


def _explain(error: ValidationError) -> str:
    """One line: path, problem and value; of a union of strategies, only of the one that was named."""
    problems = error.errors()
    names = [each for each in problems if each["type"] == "literal_error" and each["loc"][-1] == "name"]
    others = {each["loc"][:-1] for each in names}
    lines = {
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}{_input_of(each)}"
        for each in problems
        if not any(each["loc"][: len(other)] == other for other in others)
    }
    if lines:
        return "; ".join(sorted(lines)[:4])
    known = ", ".join(sorted(each.get("ctx", {})["expected"] for each in names))
    return f"{'.'.join(map(str, problems[0]['loc'][:-2]))} is {problems[0]['input']!r}; known are {known}"


def _input_of(problem: ErrorDetails) -> str:
    """The value, unless the message has it already or it may be a secret."""
    hidden = problem["type"] == "value_error" or "headers" in problem["loc"]
    return "" if hidden else f" (got {problem['input']!r})"
