"""Runs with MLflow on SQLite: scores, settings, tags."""

import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.stages import ROOT
from storage.tracking import Tracking, TrackingError
from storage.tracking.flattening import (
    flatten_params,
    flatten_scores,
    metric_name,
    shorten_kind_scores,
)
from storage.tracking.nights import read_nights
from storage.tracking.tags import AS_OF_TAG, FLOW_RUN_ID_TAG, HOME_TAG

SCORES = {
    "protocols": {
        "unseen_title": {
            "title_only": {"knn": {"accuracy": 0.5, "ci95": {"accuracy": [0.4, 0.6]}}, "n": 200},
            "title_context": {"n": 0, "reason": "not built"},
        },
        "next_period": {"n": 0, "reason": "the guide is too short"},
    },
    "clusters": {"count": 12, "ari": float("nan"), "noise_share": 0.25},
    "champion": True,
}


def test_importing_the_package_does_not_import_mlflow() -> None:
    subprocess.run(
        [sys.executable, "-c", "import sys, storage.tracking; sys.exit('mlflow' in sys.modules)"], check=True
    )


def test_a_run_is_resumed_by_its_flow_run(tracking: Tracking) -> None:
    first = tracking.start_run("flow-1", "night of friday", {"preset": "smoke"}, {"train": {"epochs": 6}})
    assert tracking.close_orphans("another") == [] and tracking.close_orphans("flow-1") == [first]
    assert tracking.mlflow.client.get_run(first).info.status == "KILLED"
    again = tracking.start_run(
        "flow-1", "another name", {"preset": "laptop"}, {"train": {"epochs": 7, "lr": 0.5}}
    )
    other = tracking.start_run("flow-2", "night of saturday")
    assert again == first != other
    run = tracking.mlflow.client.get_run(first)
    assert (run.info.status, run.info.run_name) == ("RUNNING", "night of friday")
    assert run.data.tags["preset"] == "laptop"
    assert run.data.params == {"train.epochs": "6", "train.lr": "0.5"}
    assert len(tracking.mlflow.client.search_runs([tracking.mlflow.experiment_id])) == 2


def test_the_next_night_ends_the_runs_of_a_killed_worker(tracking: Tracking) -> None:
    """The writer holds the home: whatever else MLflow shows as running in it is dead, but for runs that are
    not ours."""
    dead, ended, own = (tracking.start_run(name, name) for name in ("dead", "ended", "own"))
    tracking.end_run(ended)
    somebodys = tracking.mlflow.client.create_run(tracking.mlflow.experiment_id).info.run_id
    within = {
        HOME_TAG: "smoke-12345678",
        FLOW_RUN_ID_TAG: "flow-9",
    }  # a home in this home, as under `guidespace up`
    smoke = tracking.mlflow.client.create_run(tracking.mlflow.experiment_id, tags=within).info.run_id
    assert tracking.close_stale_runs(own) == [dead]
    status = [tracking.mlflow.client.get_run(run).info.status for run in (dead, ended, own, somebodys, smoke)]
    assert status == ["KILLED", "FINISHED", "RUNNING", "RUNNING", "RUNNING"]


def test_links_lead_both_ways(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night", {"prefect.flow_run_url": "http://127.0.0.1:4200/runs/1"})
    tags = tracking.mlflow.client.get_run(run_id).data.tags
    assert tags["prefect.flow_run_id"] == "flow-1"
    assert tags["mlflow.note.content"] == "[Flow run in Prefect](http://127.0.0.1:4200/runs/1)"
    assert str(tracking.mlflow.database) in tracking.run_location(run_id)
    assert tracking.run_location(run_id).endswith(f"/runs/{run_id}?workflowType=machine_learning")


def test_all_steps_of_a_metric_are_logged(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night")
    tracking.log_steps(
        run_id, ((step, {"train/loss": 1 / (step + 1), "train/lr": 0.1}) for step in range(1250))
    )
    history = tracking.mlflow.client.get_metric_history(run_id, "train/loss")
    assert sorted((point.step, point.value) for point in history) == [
        (step, 1 / (step + 1)) for step in range(1250)
    ]


def test_many_params_are_logged(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night", params={f"p{i}": i for i in range(250)})
    assert tracking.mlflow.client.get_run(run_id).data.params == {f"p{i}": str(i) for i in range(250)}


def test_feeds_are_datasets_without_passwords(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night")
    feeds = [
        {
            "source": "https://me:secret@tv.example:8443/uk/guide.xml.gz?username=me&password=secret",
            "content_digest": "ab" * 32,
            "seen": 10,
            "stored": 9,
        },
        {"source": "/guides/za.xml", "content_digest": "cd" * 32, "seen": 4, "stored": 4},
    ]
    tracking.log_feeds(run_id, feeds)
    tracking.log_feeds(run_id, feeds)  # a resumed run says it again
    inputs = {
        item.dataset.name: item for item in tracking.mlflow.client.get_run(run_id).inputs.dataset_inputs
    }
    assert set(inputs) == {"guide.xml.gz", "za.xml"}
    remote = inputs["guide.xml.gz"]
    assert remote.dataset.digest == "ab" * 18
    assert remote.dataset.source == '{"url": "https://tv.example:8443/uk/guide.xml.gz"}'
    assert remote.dataset.profile == '{"seen": 10, "stored": 9}'
    assert {tag.key: tag.value for tag in remote.tags} == {
        "mlflow.data.context": "training",
        "guidespace.content_digest": "ab" * 32,
    }


def test_a_deleted_experiment_is_explained(tracking: Tracking, mlflow_home: Path) -> None:
    tracking.mlflow.client.delete_experiment(tracking.mlflow.experiment_id)
    with pytest.raises(TrackingError, match="mlflow experiments restore --experiment-id"):
        Tracking(mlflow_home).start_run("flow-1", "night")


def test_scores_flatten_known_answer() -> None:
    assert flatten_scores(SCORES) == {
        "unseen_title/title_only/knn/accuracy": 0.5,
        "unseen_title/title_only/n": 200.0,
        "unseen_title/title_context/n": 0.0,
        "next_period/n": 0.0,
        "clusters/count": 12.0,
        "clusters/noise_share": 0.25,
        "champion": 1.0,
    }


@given(st.text(max_size=300))
def test_any_text_makes_a_metric_name(text: str) -> None:
    from mlflow.utils.validation import _validate_metric_name

    _validate_metric_name(metric_name("accuracy", text))
    _validate_metric_name(metric_name(text))


def test_params_flatten_known_answer() -> None:
    @dataclass(frozen=True)
    class Rule:
        name: str = "sgd"
        lr: float = 0.1

    @dataclass(frozen=True)
    class Settings:
        epochs: int = 6
        rule: Rule = field(default_factory=Rule)

    flat = flatten_params({"train": Settings(), "feeds": ["a.xml", "é.xml"], "long": "x" * 7000})
    long = flat.pop("long")
    assert flat == {
        "train.epochs": "6",
        "train.rule.name": "sgd",
        "train.rule.lr": "0.1",
        "feeds": '["a.xml", "é.xml"]',
    }
    assert len(long) == 6000 and long.endswith("x… (7000 characters)")


def test_the_report_is_the_runs_description_below_the_link(tracking: Tracking) -> None:
    run = tracking.start_run("flow-1", "night", {"prefect.flow_run_url": "http://127.0.0.1:4200/runs/1"})
    tracking.describe(run, "## Champion\n" + "a line of it\n" * 1000)
    text = tracking.mlflow.client.get_run(run).data.tags["mlflow.note.content"]
    assert text.startswith("[Flow run in Prefect](http://127.0.0.1:4200/runs/1)\n\n## Champion\na line of it")
    assert text.endswith("a line of it\n\n… the rest is in report.md") and len(text) <= 8000


def test_a_run_names_the_commit_and_the_machines_load(
    tracking: Tracking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.1")
    run = tracking.start_run("flow-1", "night")
    with tracking.system_metrics(run):
        time.sleep(1)
    data = tracking.mlflow.client.get_run(run).data
    assert data.metrics["system/system_memory_usage_megabytes"] > 0
    if (ROOT / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{40}", data.tags["mlflow.source.git.commit"])


def test_the_nights_are_those_that_reported_oldest_first(tracking: Tracking) -> None:
    for number, champion in enumerate((True, False, True), 1):
        run = tracking.start_run(f"flow-{number}", f"night {number}")
        about = {"model_version": number, "champion": champion, "gate": f"reason {number}"}
        tracking.log_progress(run, 0, {"drift/oov_share": number / 10})
        tracking.set_tags(run, {f"guidespace.{name}": value for name, value in about.items()})
        tracking.end_run(run)
    tracking.start_run("flow-4", "under way")
    nights = read_nights(tracking.mlflow)
    assert [(night.version, night.champion, night.reason) for night in nights] == [
        ("1", True, "reason 1"),
        ("2", False, "reason 2"),
        ("3", True, "reason 3"),
    ]
    assert nights[1].metrics["drift/oov_share"] == 0.2 and nights[1].metrics["night/seconds"] >= 0
    assert [night.version for night in read_nights(tracking.mlflow, limit=2)] == ["2", "3"]


def test_nights_are_ordered_by_their_instant(tracking: Tracking) -> None:
    instants = ("", "2026-03-02T03:30:00+00:00", "2026-03-03T03:30:00+00:00", "2026-03-01T03:30:00+00:00")
    for number, instant in enumerate(instants):
        tags = {AS_OF_TAG: instant} if instant else {}  # the first is of an older version
        run = tracking.start_run(f"flow-{number}", f"night {number}", tags)
        tracking.set_tags(run, {"guidespace.model_version": number})
        tracking.end_run(run, "FAILED" if number == 1 else "FINISHED")
    nights = read_nights(tracking.mlflow)
    assert [night.version for night in nights] == ["0", "3", "1", "2"]
    assert [night.finished for night in nights] == [True, True, False, True]
    assert [f"{night.at:%F %H:%M}" for night in nights[1:]] == [
        "2026-03-01 03:30",
        "2026-03-02 03:30",
        "2026-03-03 03:30",
    ]
    assert [night.version for night in read_nights(tracking.mlflow, limit=2)] == ["1", "2"]


def test_kinds_have_three_figures_each():
    figures = {"n": 9, "titles": 3, "average_precision": 0.9, "precision": 1.0, "recall": 0.5}
    scores = {"k": 10, "kinds": {"film": {"all": figures, "unseen_title": figures}}}
    expected = {"precision": 1.0, "recall": 0.5, "average_precision": 0.9}
    assert shorten_kind_scores(scores) == {"k": 10, "kinds": {"film": expected}}
    assert shorten_kind_scores({"k": 10}) == {"k": 10, "kinds": {}}
