"""Trains from a Corpus folder on a bare machine (with torch, numpy, pyarrow and safetensors alone). OUT
receives what a Checkpoint holds. Started again, a killed run is resumed, a finished one trained further.
"""

import argparse
import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

from tasks.train.checkpoint import Checkpointer, write_checkpoint
from tasks.train.loop import Training, describe
from tasks.train.settings import TrainSettings


def build(kind: Any, value: Any) -> Any:
    """Settings from JSON; of a union, the strategy whose ``name`` is given. Types and bounds are not checked:
    pydantic, which checks them elsewhere, is not on a bare machine. ValueError for an unknown name.
    """
    if isinstance(value, list):
        return tuple(build(typing.get_args(kind)[0], item) for item in value)
    if not isinstance(value, dict):
        return value
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = {member.name: member for member in typing.get_args(kind)}
        if value.get("name") not in members:
            raise ValueError(f"name is {value.get('name')!r}, known are {', '.join(members)}")
        kind = members[value["name"]]
    hints, known = typing.get_type_hints(kind), [field.name for field in dataclasses.fields(kind)]
    if unknown := sorted(set(value) - set(known)):
        raise ValueError(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(known)}")
    return kind(**{name: build(hints[name], item) for name, item in value.items()})


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("python -m tasks.train", description=__doc__)
    parser.add_argument("corpus", type=Path, help="folder of a Corpus (artifacts/corpus/KEY of a home)")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("settings", type=Path, nargs="?", help="JSON with the fields of TrainSettings")
    given = parser.parse_args(arguments)
    if not (given.corpus / "tokens.offsets.npy").exists():
        parser.error(f"{given.corpus} is not a Corpus folder (no tokens.offsets.npy)")
    settings = build(
        TrainSettings, json.loads(given.settings.read_text(encoding="utf-8")) if given.settings else {}
    )
    training, checkpointer = Training(given.corpus, settings), Checkpointer(given.out / "going-on")
    training.resume(checkpointer)
    for progress in training.run(checkpointer):
        print(describe(progress), flush=True)
    write_checkpoint(given.out / "checkpoint.safetensors", training.trainer, training.position)
    return 0


if __name__ == "__main__":
    sys.exit(main())
