"""Trains from a Corpus folder on a bare machine: ``python -m tasks.train CORPUS_DIR OUT_DIR [settings.json]``.

Needs torch, numpy, pyarrow and safetensors alone. OUT_DIR receives what a Checkpoint holds; a run that was killed goes
on where it stopped when started again, and one that has ended goes on to more epochs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import operator
import sys
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tasks.train.checkpoint import KeptOnDisk, write_checkpoint
from tasks.train.loop import Training, tell
from tasks.train.settings import TrainSettings

_TYPES: dict[Any, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)), int: ("a whole number", (int,)), float: ("a number", (int, float)), str: ("a text", (str,)),
}  # fmt: skip
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "gt": (operator.gt, "more than"), "ge": (operator.ge, "at least"), "lt": (operator.lt, "less than"), "le": (operator.le, "at most"),
}  # fmt: skip


def build(kind: Any, values: dict[str, Any]) -> Any:
    """Settings from plain values; of a union, the strategy whose ``name`` is given.

    Raises:
        ValueError: A name that is not there (the known ones are listed), or a value that a field does not take.
    """
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = {member.name: member for member in typing.get_args(kind)}
        if values.get("name") not in members:
            raise ValueError(f"name is {values.get('name')!r}, known are {', '.join(members)}")
        kind = members[values["name"]]
    hints, fields = typing.get_type_hints(kind), {field.name: field for field in dataclasses.fields(kind)}
    unknown = set(values) - set(fields)
    if unknown:
        raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}; it has {', '.join(fields)}")
    return kind(**{name: _value(f"{kind.__name__}.{name}", hints[name], value, fields[name].metadata) for name, value in values.items()})


def _value(where: str, kind: Any, value: Any, bounds: Mapping[str, Any]) -> Any:
    """A field's value: settings of settings, lists of them, names and numbers, checked as pydantic does where there is one.

    Raises:
        ValueError: It is of another type, is none of the names or lies beyond a bound; what was expected is told.
    """
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(_value(where, members[0], item, {}) for item in value)
    if isinstance(value, dict) and (dataclasses.is_dataclass(kind) or origin in (typing.Union, types.UnionType)):
        return build(kind, value)
    if origin is typing.Literal:
        if value not in members:
            raise ValueError(f"{where} is {value!r}, known are {', '.join(members)}")
        return value
    words, accepted = _TYPES.get(kind, ("a list" if origin is tuple else 'an object with its "name"', ()))
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{where} is {value!r}, expected {words}")
    for name, (holds, words) in _BOUNDS.items():
        if name in bounds and not holds(value, bounds[name]):
            raise ValueError(f"{where} is {value!r}, expected {words} {bounds[name]}")
    return value


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tasks.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of a Corpus (artifacts/corpus/KEY of a home)")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("settings", type=Path, nargs="?", help="JSON with the fields of TrainSettings")
    given = parser.parse_args(arguments)
    if not (given.corpus / "tokens.offsets.npy").exists():
        parser.error(f"{given.corpus} is no Corpus folder (no tokens.offsets.npy)")
    settings = build(TrainSettings, json.loads(given.settings.read_text()) if given.settings else {})
    training, kept = Training(given.corpus, settings), KeptOnDisk(given.out / "going-on")
    training.resume(kept)
    for progress in training.run(kept):
        print(tell(progress), flush=True)
    write_checkpoint(given.out / "checkpoint.safetensors", training.learner, training.position)
    return 0


if __name__ == "__main__":
    sys.exit(main())
