"""Trains on the folder of a Corpus, in an environment without Prefect and pydantic.

The command needs only torch, NumPy, pyarrow and safetensors. It writes checkpoint.safetensors to its output
folder. If the command is repeated, it resumes an interrupted training. It continues a finished training if
the settings now have more epochs.
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
from tasks.train.loop import Training, format_progress
from tasks.train.settings import TrainSettings


def build_settings(settings_type: Any, value: Any) -> Any:
    """Builds an instance of ``settings_type`` from a JSON value.

    If ``settings_type`` is a union of strategies, the key ``name`` of the value selects the strategy. Types
    and bounds of the fields are not checked, because pydantic may not be installed.

    Raises:
        ValueError: The name of a strategy or of a field is unknown.
    """
    if isinstance(value, list):
        return tuple(build_settings(typing.get_args(settings_type)[0], item) for item in value)
    if not isinstance(value, dict):
        return value
    if typing.get_origin(settings_type) in (typing.Union, types.UnionType):
        strategies = {strategy.name: strategy for strategy in typing.get_args(settings_type)}
        if value.get("name") not in strategies:
            raise ValueError(f"name is {value.get('name')!r}; expected one of {', '.join(strategies)}")
        settings_type = strategies[value["name"]]
    field_types = typing.get_type_hints(settings_type)
    field_names = [field.name for field in dataclasses.fields(settings_type)]
    if unknown_names := sorted(set(value) - set(field_names)):
        raise ValueError(
            f"{settings_type.__name__} has no field {', '.join(unknown_names)}; its fields are "
            f"{', '.join(field_names)}"
        )
    return settings_type(**{name: build_settings(field_types[name], value[name]) for name in value})


def main(arguments: list[str] | None = None) -> int:
    """Runs the command with the command-line arguments and returns the exit code."""
    parser = argparse.ArgumentParser("python -m tasks.train", description=__doc__)
    parser.add_argument("corpus", type=Path, help="folder of a Corpus: artifacts/corpus/KEY in a home")
    parser.add_argument("out", type=Path, help="folder to which the command writes checkpoint.safetensors")
    parser.add_argument("settings", type=Path, nargs="?", help="JSON file with the fields of TrainSettings")
    options = parser.parse_args(arguments)
    if not (options.corpus / "tokens.offsets.npy").exists():
        parser.error(f"{options.corpus} is not a Corpus folder: it contains no tokens.offsets.npy")
    fields = json.loads(options.settings.read_text(encoding="utf-8")) if options.settings else {}
    training = Training(options.corpus, build_settings(TrainSettings, fields))
    checkpointer = Checkpointer(options.out / "going-on")
    training.resume(checkpointer)
    for progress in training.run(checkpointer):
        print(format_progress(progress), flush=True)
    write_checkpoint(options.out / "checkpoint.safetensors", training.trainer, training.position)
    return 0


if __name__ == "__main__":
    sys.exit(main())
