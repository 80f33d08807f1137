"""Runs and the registry, against a real MLflow on SQLite (and, slow, against a real server)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.tracking import EXPERIMENT, MODEL_NAME, MetricBuffer, Registry, Tracking, TrackingError
from storage.tracking.local_database import aliased_version
from storage.tracking.metrics import flatten_params, flatten_scores, metric_name

STAND_IN = Path(__file__).with_name("served_stand_in.py")
NIGHT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SCORES = {
    "protocols": {
        "unseen_title": {"title_only": {"knn": {"accuracy": 0.5, "ci95": {"accuracy": [0.4, 0.6]}}, "n": 200}, "title_context": {"n": 0, "reason": "not built"}},
        "next_period": {"n": 0, "reason": "the guide is too short"},
    },
    "clusters": {"count": 12, "ari": float("nan"), "noise_share": 0.25},
    "champion": True,
}


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="module")
def made_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with MLflow's tables; a test works on a copy, for making them takes a second."""
    home = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        Tracking(home).connection.experiment_id  # noqa: B018
    return home


@pytest.fixture
def home(made_home: Path, tmp_path: Path) -> Path:
    shutil.copytree(made_home, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def tracking(home: Path) -> Tracking:
    return Tracking(home)


@pytest.fixture
def registry(home: Path) -> Registry:
    return Registry(home, code=STAND_IN)


def model_folder(parent: Path, content: str) -> Path:
    folder = parent / content
    folder.mkdir(parents=True)
    (folder / "vectors.npy").write_text(content)
    return folder


def register(registry: Registry, run_id: str, parent: Path, digest: str) -> str:
    folder = parent / digest if (parent / digest).exists() else model_folder(parent, digest)
    return registry.register(run_id, folder, digest, example_title="Evening News", lineage="salt-1")


# -- runs ----------------------------------------------------------------------------------------------------------------


def test_importing_the_package_does_not_import_mlflow() -> None:
    subprocess.run([sys.executable, "-c", "import sys, storage.tracking; sys.exit('mlflow' in sys.modules)"], check=True)


def test_a_run_is_resumed_by_its_flow_run(tracking: Tracking) -> None:
    first = tracking.start_run("flow-1", "night of friday", {"preset": "smoke"}, {"train": {"epochs": 6}})
    tracking.close_orphans("flow-1")
    assert tracking.client.get_run(first).info.status == "KILLED"
    again = tracking.start_run("flow-1", "another name", {"preset": "laptop"}, {"train": {"epochs": 7, "lr": 0.5}})
    other = tracking.start_run("flow-2", "night of saturday")
    assert again == first != other
    run = tracking.client.get_run(first)
    assert (run.info.status, run.info.run_name) == ("RUNNING", "night of friday")
    assert run.data.tags["preset"] == "laptop"
    assert run.data.params == {"train.epochs": "6", "train.lr": "0.5"}
    assert len(tracking.client.search_runs([tracking.connection.experiment_id])) == 2


def test_orphans_are_closed_and_nothing_else(tracking: Tracking) -> None:
    dead, alive = tracking.start_run("dead", "dead"), tracking.start_run("alive", "alive")
    assert tracking.close_orphans("dead", "FAILED") == [dead]
    assert tracking.close_orphans("dead") == []
    assert [tracking.client.get_run(run).info.status for run in (dead, alive)] == ["FAILED", "RUNNING"]


def test_the_next_night_closes_what_died_with_its_worker(tracking: Tracking) -> None:
    """The writer holds the home: whatever else MLflow shows as running in it is dead, but for runs that are not ours."""
    dead, ended, own = (tracking.start_run(name, name) for name in ("dead", "ended", "own"))
    tracking.end_run(ended)
    somebodys = tracking.client.create_run(tracking.connection.experiment_id).info.run_id
    assert tracking.close_silent(own) == [dead]
    status = [tracking.client.get_run(run).info.status for run in (dead, ended, own, somebodys)]
    assert status == ["KILLED", "FINISHED", "RUNNING", "RUNNING"]


def test_a_run_ends_with_a_status_that_mlflow_knows(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night")
    tracking.end_run(run_id)
    assert tracking.client.get_run(run_id).info.status == "FINISHED"
    with pytest.raises(ValueError, match="'done'"):
        tracking.end_run(run_id, "done")


def test_links_lead_both_ways(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night", {"prefect.flow_run_url": "http://127.0.0.1:4200/runs/1"})
    tags = tracking.client.get_run(run_id).data.tags
    assert tags["prefect.flow_run_id"] == "flow-1"
    assert tags["mlflow.note.content"] == "[Flow run in Prefect](http://127.0.0.1:4200/runs/1)"
    assert str(tracking.connection.database) in tracking.where(run_id)
    assert tracking.where(run_id).endswith(f"/runs/{run_id}?workflowType=machine_learning")


def test_metrics_over_steps_arrive_whole(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night")
    with tracking.buffer(run_id) as buffer:
        for step in range(1250):
            buffer.log(step, {"train/loss": 1 / (step + 1), "train/lr": 0.1})
    history = tracking.client.get_metric_history(run_id, "train/loss")
    assert sorted((point.step, point.value) for point in history) == [(step, 1 / (step + 1)) for step in range(1250)]


def test_threads_log_to_the_run_they_name(tracking: Tracking) -> None:
    runs = [tracking.start_run(f"flow-{i}", "night") for i in range(4)]
    threads = [threading.Thread(target=tracking.log_progress, args=(run, 1, {"loss": float(i)})) for i, run in enumerate(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [tracking.client.get_run(run).data.metrics["loss"] for run in runs] == [0.0, 1.0, 2.0, 3.0]


def test_scores_become_metrics(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night")
    assert tracking.log_scores(run_id, SCORES) == tracking.client.get_run(run_id).data.metrics


def test_figures_parameters_and_dataset_lead_to_the_logged_model(tracking: Tracking, registry: Registry, tmp_path: Path) -> None:
    run_id = tracking.start_run("flow-1", "night", params={"train": {"epochs": 6}})
    model_id = registry.logged_model(register(registry, run_id, tmp_path, "aaa"))
    snapshot = tracking.log_snapshot(run_id, "cd" * 32, tmp_path, {"programmes": 12})
    tracking.log_figures(run_id, {"quality": 0.5, "clusters": 12.0}, model_id, snapshot)
    assert tracking.client.get_run(run_id).data.metrics == {"at_a_glance/quality": 0.5, "at_a_glance/clusters": 12.0}
    model = tracking.client.get_logged_model(model_id)
    assert model.params == {"train.epochs": "6"} and model.source_run_id == run_id
    assert {(metric.key, metric.value, metric.dataset_name, metric.dataset_digest) for metric in model.metrics} == {
        ("at_a_glance/quality", 0.5, "guide", "cd" * 18), ("at_a_glance/clusters", 12.0, "guide", "cd" * 18),
    }  # fmt: skip
    found = tracking.client.search_logged_models([tracking.connection.experiment_id], "metrics.`at_a_glance/quality` > 0.4", datasets=[{"dataset_name": "guide"}])
    assert [one.model_id for one in found] == [model_id]


def test_many_params_arrive_whole(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night", params={f"p{i}": i for i in range(250)})
    assert tracking.client.get_run(run_id).data.params == {f"p{i}": str(i) for i in range(250)}


def test_feeds_are_datasets_without_passwords(tracking: Tracking) -> None:
    run_id = tracking.start_run("flow-1", "night")
    feeds = [
        {"source": "https://me:secret@tv.example:8443/uk/guide.xml.gz?username=me&password=secret", "content_digest": "ab" * 32, "seen": 10, "stored": 9},
        {"source": "/guides/za.xml", "content_digest": "cd" * 32, "seen": 4, "stored": 4},
    ]
    tracking.log_feeds(run_id, feeds)
    tracking.log_feeds(run_id, feeds)  # a resumed run says it again
    inputs = {item.dataset.name: item for item in tracking.client.get_run(run_id).inputs.dataset_inputs}
    assert set(inputs) == {"guide.xml.gz", "za.xml"}
    remote = inputs["guide.xml.gz"]
    assert remote.dataset.digest == "ab" * 18
    assert remote.dataset.source == '{"url": "https://tv.example:8443/uk/guide.xml.gz"}'
    assert remote.dataset.profile == '{"seen": 10, "stored": 9}'
    assert {tag.key: tag.value for tag in remote.tags} == {"mlflow.data.context": "training", "guidespace.content_digest": "ab" * 32}


def test_files_become_artifacts(tracking: Tracking, tmp_path: Path) -> None:
    folder = model_folder(tmp_path, "plots")
    run_id = tracking.start_run("flow-1", "night")
    tracking.log_folder(run_id, folder, "plots")
    tracking.log_file(run_id, folder / "vectors.npy")
    assert {item.path for item in tracking.client.list_artifacts(run_id)} == {"plots", "vectors.npy"}
    assert [item.path for item in tracking.client.list_artifacts(run_id, "plots")] == ["plots/vectors.npy"]


def test_a_deleted_experiment_is_explained(tracking: Tracking, home: Path) -> None:
    tracking.client.delete_experiment(tracking.connection.experiment_id)
    with pytest.raises(TrackingError, match="mlflow experiments restore --experiment-id"):
        Tracking(home).start_run("flow-1", "night")


# -- names and batches -----------------------------------------------------------------------------------------------------


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
    assert flat == {"train.epochs": "6", "train.rule.name": "sgd", "train.rule.lr": "0.1", "feeds": '["a.xml", "é.xml"]'}
    assert len(long) == 6000 and long.endswith("x… (7000 characters)")


def test_a_buffer_sends_at_most_a_thousand_and_loses_nothing() -> None:
    sent: list[list] = []
    with MetricBuffer(lambda points: sent.append(list(points)), seconds=3600) as buffer:
        for step in range(700):
            buffer.log(step, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert max(map(len, sent)) <= 1000
    assert [(name, step) for batch in sent for name, _, _, step in batch] == [(name, step) for step in range(700) for name in "abc"]


def test_a_buffer_keeps_what_could_not_be_sent() -> None:
    sent: list[int] = []
    broken = True

    def send(points: object) -> None:
        if broken:
            raise ConnectionError("no server")
        sent.append(len(points))  # type: ignore[arg-type]

    buffer = MetricBuffer(send, seconds=3600)
    buffer.log(1, {"a": 1.0})
    with pytest.raises(ConnectionError):
        buffer.flush()
    broken = False
    buffer.flush()
    assert sent == [1]


def test_a_buffer_does_not_wait_longer_than_told() -> None:
    sent: list[int] = []
    buffer = MetricBuffer(lambda points: sent.append(len(points)), seconds=0.0)
    buffer.log(1, {"a": 1.0})
    assert sent == [1]


# -- the registry ----------------------------------------------------------------------------------------------------------


def test_no_champion_in_a_new_home(tmp_path: Path) -> None:
    assert Registry(tmp_path / "new").champion() is None
    assert not (tmp_path / "new").exists()


def test_the_same_model_is_one_version(tracking: Tracking, registry: Registry, tmp_path: Path) -> None:
    first, second = tracking.start_run("flow-1", "friday"), tracking.start_run("flow-2", "saturday")
    assert registry.champion() is None
    assert register(registry, first, tmp_path, "aaa") == "1"
    assert register(registry, second, tmp_path, "aaa") == "1"
    assert register(registry, second, tmp_path, "bbb") == "2"
    client = tracking.client
    assert client.get_model_version_by_alias(MODEL_NAME, "challenger").version in (2, "2")
    models = {run: {output.model_id for output in client.get_run(run).outputs.model_outputs} for run in (first, second)}
    assert len(models[first]) == 1 and len(models[second]) == 2 and models[first] < models[second]
    assert registry.champion() is None


def test_promotion_and_rollback(tracking: Tracking, registry: Registry, tmp_path: Path) -> None:
    run_id = tracking.start_run("flow-1", "friday")
    for day, digest in enumerate(("aaa", "bbb", "ccc")):
        version = register(registry, run_id, tmp_path, digest)
        registry.promote(version, f"not worse on day {day}", at=NIGHT + timedelta(days=day), quality=0.5)
    champion = registry.champion()
    assert champion is not None and (champion.version, champion.digest) == ("3", "ccc")
    assert (champion.folder / "vectors.npy").read_text() == "ccc"
    past = registry.promoted()
    assert [(item.version, item.digest, item.reason, item.lineage) for item in past] == [
        ("3", "ccc", "not worse on day 2", "salt-1"),
        ("2", "bbb", "not worse on day 1", "salt-1"),
        ("1", "aaa", "not worse on day 0", "salt-1"),
    ]
    assert past[0].quality == 0.5
    assert past[0].promoted_at == "2026-11-23T03:00:00+00:00"
    assert [item.version for item in registry.promoted(limit=1)] == ["3"]
    # What a person does in MLflow's page:
    tracking.client.set_registered_model_alias(MODEL_NAME, "champion", "1")
    back = registry.champion()
    assert back is not None and (back.version, back.digest) == ("1", "aaa")
    tracking.client.delete_registered_model_alias(MODEL_NAME, "champion")
    assert registry.champion() is None


def test_a_chosen_name_is_known_to_whoever_reads_the_home(tracking: Tracking, registry: Registry, tmp_path: Path, home: Path) -> None:
    chosen = Registry(home, code=STAND_IN, name="our titles")
    chosen.promote(register(chosen, tracking.start_run("flow-1", "friday"), tmp_path, "aaa"), "the first", at=NIGHT)
    reader = Registry(home).champion()
    assert reader is not None and reader.digest == "aaa" and Registry(home).name == "our titles"
    assert Registry(home, name="").champion() is None and Registry(home, name="").name == MODEL_NAME


def test_the_homes_own_database_has_the_plain_name_however_it_is_named(tracking: Tracking, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking.connection.uri)
    assert Registry(home).name == MODEL_NAME
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert Registry(home).name != MODEL_NAME


def test_the_database_and_mlflow_name_the_same_champion(tracking: Tracking, registry: Registry, tmp_path: Path) -> None:
    version = register(registry, tracking.start_run("flow-1", "friday"), tmp_path, "aaa")
    registry.promote(version, "the first", at=NIGHT)
    read = aliased_version(tracking.connection.database, MODEL_NAME, "champion")
    told = tracking.client.get_model_version_by_alias(MODEL_NAME, "champion")
    assert read == (str(told.version), "aaa", tracking.client.get_model_version_download_uri(MODEL_NAME, told.version))


def test_a_champion_whose_files_are_gone_is_explained_and_can_be_made_again(tracking: Tracking, registry: Registry, tmp_path: Path, home: Path) -> None:
    run_id = tracking.start_run("flow-1", "friday")
    registry.promote(register(registry, run_id, tmp_path, "aaa"), "the first", at=NIGHT)
    shutil.rmtree(home / "mlflow" / "models")
    with pytest.raises(TrackingError, match="guidespace nightly"):
        registry.champion()
    assert register(registry, run_id, tmp_path, "aaa") == "2"


# -- a home that moves -----------------------------------------------------------------------------------------------------


def test_a_moved_home_is_whole(tracking: Tracking, registry: Registry, tmp_path: Path, home: Path) -> None:
    run_id = tracking.start_run("flow-1", "friday")
    tracking.log_file(run_id, STAND_IN)
    registry.promote(register(registry, run_id, tmp_path, "aaa"), "the first", at=NIGHT)
    moved = home.rename(tmp_path / "moved")
    champion = Registry(moved).champion()
    assert champion is not None and champion.folder.is_relative_to(moved)
    assert (champion.folder / "vectors.npy").read_text() == "aaa"
    after = Tracking(moved)
    assert [item.path for item in after.client.list_artifacts(run_id)] == [STAND_IN.name]
    assert Registry(moved, code=STAND_IN).register(run_id, tmp_path / "aaa", "aaa", example_title="News", lineage="salt-1") == "1"
    after.log_file(after.start_run("flow-2", "saturday"), STAND_IN)
    assert not home.exists()


def test_a_copied_home_leaves_the_first_alone(tracking: Tracking, registry: Registry, tmp_path: Path, home: Path) -> None:
    registry.promote(register(registry, tracking.start_run("flow-1", "friday"), tmp_path, "aaa"), "the first", at=NIGHT)
    copy = Path(shutil.copytree(home, tmp_path / "copy"))
    for place in (copy, home):
        champion = Registry(place).champion()
        assert champion is not None and champion.folder.is_relative_to(place)
        assert Tracking(place).client.get_experiment_by_name(EXPERIMENT).artifact_location == str(place / "mlflow")
