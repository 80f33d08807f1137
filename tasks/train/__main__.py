"""Trains on a Corpus folder in an environment without Prefect and pydantic.

Only torch, NumPy, pyarrow and safetensors are needed. The command writes checkpoint.safetensors to the folder
OUT. If it is repeated, it resumes an interrupted run, or continues a finished run if the settings now have
more epochs.
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
    """Builds settings of type ``kind`` from a JSON value.

    If ``kind`` is a union of strategies, the key ``name`` of the value selects the strategy. Types and bounds
    are not checked, because pydantic may not be installed.

    Raises:
        ValueError: A strategy or field name is unknown.
    """
    if isinstance(value, list):
        return tuple(build(typing.get_args(kind)[0], item) for item in value)
    if not isinstance(value, dict):
        return value
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = {member.name: member for member in typing.get_args(kind)}
        if value.get("name") not in members:
            raise ValueError(f"name is {value.get('name')!r}, expected one of {', '.join(members)}")
        kind = members[value["name"]]
    hints, names = typing.get_type_hints(kind), [field.name for field in dataclasses.fields(kind)]
    if unknown := sorted(set(value) - set(names)):
        raise ValueError(f"{kind.__name__} has no field {', '.join(unknown)}; it has {', '.join(names)}")
    return kind(**{name: build(hints[name], item) for name, item in value.items()})


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns the exit code."""
    parser = argparse.ArgumentParser("python -m tasks.train", description=__doc__)
    parser.add_argument("corpus", type=Path, help="folder of a Corpus (artifacts/corpus/KEY of a home)")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("settings", type=Path, nargs="?", help="JSON with the fields of TrainSettings")
    args = parser.parse_args(arguments)
    if not (args.corpus / "tokens.offsets.npy").exists():
        parser.error(f"{args.corpus} is not a Corpus folder (no tokens.offsets.npy)")
    settings = build(
        TrainSettings, json.loads(args.settings.read_text(encoding="utf-8")) if args.settings else {}
    )
    training, checkpointer = Training(args.corpus, settings), Checkpointer(args.out / "going-on")
    training.resume(checkpointer)
    for progress in training.run(checkpointer):
        print(describe(progress), flush=True)
    write_checkpoint(args.out / "checkpoint.safetensors", training.trainer, training.position)
    return 0


if __name__ == "__main__":
    sys.exit(main())
