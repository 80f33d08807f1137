"""Trains from a Corpus folder on a bare machine: ``python -m tasks.train CORPUS_DIR OUT_DIR [settings.json]``.

With several processes: ``torchrun --nproc-per-node 2 -m tasks.train CORPUS_DIR OUT_DIR`` (tasks/train/ranks.py).

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

from tasks.train.checkpoint import KeptByFirst, KeptOnDisk, write_checkpoint
from tasks.train.loop import Training, tell
from tasks.train.ranks import join_ranks
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
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(kind: Any, value: Any) -> Any:
    """A field's value: settings of settings, also in a list of them."""
    if isinstance(value, list):
        return tuple(_value(typing.get_args(kind)[0], item) for item in value)
    return build(kind, value) if isinstance(value, dict) else value


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
    with join_ranks() as ranks:
        training = Training(given.corpus, settings, ranks)
        kept = KeptByFirst(given.out / "going-on", ranks) if ranks else KeptOnDisk(given.out / "going-on")
        training.resume(kept)
        first = not ranks or ranks.rank == 0
        for progress in training.run(kept):
            if first:
                print(tell(progress), flush=True)
        if first:
            write_checkpoint(given.out / "checkpoint.safetensors", training.learner, training.position)
    return 0


if __name__ == "__main__":
    sys.exit(main())
