"""``python -m tasks.train CORPUS OUT [settings.json]`` on a bare machine."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from safetensors.torch import load_file

from storage.stages import ROOT
from tasks.optimizers import SGD, Adam
from tasks.optimizers.parameter_groups import ParameterGroup
from tasks.train.__main__ import build_settings, main
from tasks.train.objectives import LeaveOneOutHinge
from tasks.train.settings import TrainSettings

SMALL = {"dim": 8, "epochs": 2, "threads": 1}


@pytest.mark.slow
def test_the_command_trains_and_resumes(toy_corpus: Path, tmp_path: Path):
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(SMALL), encoding="utf-8")
    command = [sys.executable, "-m", "tasks.train", str(toy_corpus), str(tmp_path / "out"), str(settings)]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1 of 2", "epoch 2 of 2"]
    assert load_file(tmp_path / "out" / "checkpoint.safetensors")["rows"].shape[1] == 8


def test_more_epochs_continue_the_training(
    toy_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    settings = tmp_path / "settings.json"
    for epochs in (1, 3):
        settings.write_text(json.dumps({**SMALL, "epochs": epochs}), encoding="utf-8")
        assert main([str(toy_corpus), str(tmp_path / "out"), str(settings)]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "epoch 1 of 1",
        "epoch 2 of 3",
        "epoch 3 of 3",
    ]


def test_a_folder_without_a_corpus_gives_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), str(tmp_path / "out")])
    assert "is not a Corpus folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_settings_choose_strategies_by_name():
    built = build_settings(
        TrainSettings,
        {
            "optimizer": {"name": "adam", "learning_rate": 0.02},
            "objective": {"name": "leave_one_out_hinge"},
            "dim": 4,
        },
    )
    assert built == TrainSettings(optimizer=Adam(learning_rate=0.02), objective=LeaveOneOutHinge(), dim=4)


def test_settings_that_were_written_are_read_as_they_were():
    for settings in (
        TrainSettings(),
        TrainSettings(
            optimizer=Adam(), groups=(ParameterGroup(pattern="rows", optimizer=SGD()),), initial_std=1
        ),
    ):
        assert build_settings(TrainSettings, json.loads(json.dumps(asdict(settings)))) == settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"optimizer": {"name": "adagard"}},
            r"name is 'adagard'; expected one of .*(adagrad.*sgd|sgd.*adagrad)",
        ),
        (
            {"epcohs": 3},
            "TrainSettings has no field epcohs; its fields are .*objective, encoder, .*dim, epochs",
        ),
        (
            {"optimizer": {"name": "sgd", "beta1": 0.9}},
            "SGD has no field beta1; its fields are name, learning_rate",
        ),
    ],
)
def test_unknown_settings_are_named_with_the_known_ones(values: dict, message: str):
    with pytest.raises(ValueError, match=message):
        build_settings(TrainSettings, values)
