"""Trains from a Corpus folder on a bare machine: ``python -m tasks.train CORPUS_DIR OUT_DIR [settings.json]``.

Needs torch, numpy, pyarrow and safetensors alone. OUT_DIR receives what a Checkpoint holds; a run that was killed goes
on from the last finished epoch when started again.
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

from tasks.train.loop import Training
from tasks.train.settings import TrainSettings


def build(kind: Any, values: dict[str, Any]) -> Any:
    """Settings from plain values; of a union, the strategy whose ``name`` is given.

    Raises:
        ValueError: A name that is not there; the known ones are listed.
    """
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = {member.name: member for member in typing.get_args(kind)}
        if values.get("name") not in members:
            raise ValueError(f"name is {values.get('name')!r}, known are {', '.join(members)}")
        kind = members[values["name"]]
    hints = typing.get_type_hints(kind)
    unknown = set(values) - set(hints)
    if unknown:
        raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}; it has {', '.join(field.name for field in dataclasses.fields(kind))}")
    return kind(**{name: build(hints[name], value) if isinstance(value, dict) else value for name, value in values.items()})


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tasks.train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of a Corpus (artifacts/corpus/KEY of a home)")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("settings", type=Path, nargs="?", help="JSON with the fields of TrainSettings")
    given = parser.parse_args(arguments)
    if not (given.corpus / "tokens.offsets.npy").exists():
        parser.error(f"{given.corpus} is no Corpus folder (no tokens.offsets.npy)")
    training = Training(given.corpus, build(TrainSettings, json.loads(given.settings.read_text()) if given.settings else {}))
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "checkpoint.safetensors"
    if file.exists():
        training.load(file)
    for progress in training.run():
        training.save(file)
        print(f"epoch {progress.step} of {progress.total}: loss {progress.metrics['loss']:.4f}, {progress.metrics['titles_per_second']:.0f} titles/s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
