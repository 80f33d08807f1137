"""``--set NAME=VALUE``: settings with some values replaced. Imports no stage, so that a command loads only those it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")


class SettingError(ValueError):
    """A ``--set`` that cannot be: the message names it and says what can."""


def override(settings: S, assignments: Sequence[str]) -> S:
    """Settings with some values replaced.

    Args:
        settings: Dataclasses within a dataclass: a preset, or what one command reads.
        assignments: ``train.epochs=5``, ``train.rule=adam`` (a strategy by name, its own values at their defaults) or
            ``train.rule.learning_rate=0.01``.

    Raises:
        SettingError: A name that is not there, or a value out of bounds.
    """
    values = dataclasses.asdict(settings)
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        *parents, last = path.strip().split(".")
        place: Any = values
        for parent in parents:
            place = place.get(parent) if isinstance(place, dict) else None
        if not separator or not isinstance(place, dict) or (last not in place and "name" not in place):
            known = ", ".join(sorted(place)) if isinstance(place, dict) else ", ".join(sorted(values))
            example = "train.epochs=5" if "train" in values else "ingest.workers=2"
            raise SettingError(f"--set {assignment!r}: expected NAME=VALUE such as {example}; known here: {known}")
        before = place.get(last)
        if isinstance(before, dict) and "name" in before:
            place[last] = {"name": text}
        else:
            place[last] = text if isinstance(before, str) else _value(text)
    try:
        return TypeAdapter(type(settings)).validate_python(values)
    except ValidationError as error:
        raise SettingError(_explain(error, assignments)) from error


def _value(text: str) -> Any:
    """A JSON value where the text is one (numbers, true, null, lists), else the text itself."""
    try:
        return TypeAdapter(Any).validate_json(text)
    except ValidationError:
        return text


def _explain(error: ValidationError, assignments: Sequence[str]) -> str:
    """One line: the path, what is wrong, what was given; of a union of strategies, only the one that was meant."""
    problems = error.errors()
    other = {problem["loc"][:-1] for problem in problems if problem["type"] == "literal_error" and problem["loc"][-1] == "name"}
    meant = [problem for problem in problems if not any(problem["loc"][: len(place)] == place for place in other)]
    lines = {f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']} (got {problem['input']!r})" for problem in meant}
    if not lines:
        known = sorted(str(problem.get("ctx", {}).get("expected")) for problem in problems if problem["type"] == "literal_error")
        lines = {f"{'.'.join(str(part) for part in problems[0]['loc'][:-2])} is {problems[0]['input']!r}; known are {', '.join(known)}"}
    return f"--set {' '.join(assignments)}: " + "; ".join(sorted(lines)[:4])
