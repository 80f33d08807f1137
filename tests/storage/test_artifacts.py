"""Artifacts are small, frozen and JSON; progress knows its share."""

import dataclasses
import json

import pytest

from storage import artifacts
from storage.artifacts import Artifact, Progress
from storage.stages import ROOT, import_closure

KINDS = [kind for kind in vars(artifacts).values() if isinstance(kind, type) and issubclass(kind, Artifact)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_artifact_is_frozen_and_survives_json(kind: type[Artifact]):
    made = kind(path="artifacts/x/y", digest="00", counts={"titles": 3})
    assert kind(**json.loads(json.dumps(dataclasses.asdict(made)))) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.digest = "11"
    assert made != Artifact(path="artifacts/x/y", digest="00", counts={"titles": 3}) or kind is Artifact


def test_they_need_the_standard_library_alone():
    files, packages = import_closure(ROOT / "storage" / "artifacts.py")
    assert files == {ROOT / "storage" / "artifacts.py"} and packages == set()


@pytest.mark.parametrize(
    ("step", "total", "percent"), [(0, 4, 0.0), (1, 4, 25.0), (4, 4, 100.0), (0, 0, 0.0)]
)
def test_progress_in_percent(step: int, total: int, percent: float):
    assert Progress(step, total).percent == percent
