"""Trains from a Corpus folder on a bare machine: ``python -m tasks.train CORPUS_DIR OUT_DIR [settings.json]``.

Needs torch, numpy, pyarrow and safetensors alone. OUT_DIR receives what a Checkpoint holds; a run that was killed goes
on where it stopped when started again, and one that has ended goes on to more epochs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

from tasks.train.checkpoint import KeptOnDisk, write_checkpoint
from tasks.train.loop import Training, tell
from tasks.train.settings import TrainSettings


def build(kind: Any, values: dict[str, Any]) -> Any:
    """Settings from JSON; of a union, the strategy whose ``name`` is given. Types and bounds are not checked here:
    pydantic, which checks them elsewhere, is not on a bare machine.

    Raises:
        ValueError: An unknown name; the known ones are listed.
    """
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = {member.name: member for member in typing.get_args(kind)}
        if values.get("name") not in members:
            raise ValueError(f"name is {values.get('name')!r}, known are {', '.join(members)}")
        kind = members[values["name"]]
    hints = typing.get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    if unknown := sorted(set(values) - set(known)):
        raise ValueError(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(known)}")
    return kind(**{name: _nested(hints[name], value) for name, value in values.items()})


def _nested(kind: Any, value: Any) -> Any:
    """A field's value: settings within settings, tuples of them, or the value itself."""
    if isinstance(value, dict):
        return build(kind, value)
    if isinstance(value, list):
        return tuple(_nested(typing.get_args(kind)[0], item) for item in value)
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
