"""Setup and end of a night: records, names and thread limits."""

import contextlib
import datetime
import importlib
import sqlite3
from types import SimpleNamespace

import pytest
from prefect.exceptions import Pause
from prefect.logging import disable_run_logger
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.utilities.names import generate_slug
from threadpoolctl import threadpool_info, threadpool_limits

from flows import run_context as night
from flows.settings import Settings
from storage.home.workspace import Workspace
from storage.tracking import Tracking
from tasks.ablate.settings import AblationSettings

SECRETS = ("annabel", "swordfish", "0123456789abcdef")
FEEDS = [
    "https://annabel:swordfish@example.org/guide.xml.gz?key=0123456789abcdef&country=de",
    "https://annabel:swordfish@example.org",
    "guides/what?.xml",
]


@pytest.fixture
def running(monkeypatch):
    """Enters the context of a flow run of these feeds."""
    told = SimpleNamespace(
        id="flow-1", parameters={"feeds": FEEDS}, scheduled_start_time=datetime.datetime(2025, 3, 1), name=""
    )
    monkeypatch.setattr(night, "this_run", told)
    told.name = night.name_run()
    return told


@pytest.mark.slow
def test_passwords_and_keys_of_feeds_are_in_no_record(running, tmp_path):
    with disable_run_logger(), night.open_night(str(tmp_path / "home"), FEEDS, Settings()) as opened:
        run = opened.run
    assert running.name == "2025-03-01 00:00 guide.xml.gz?country=de +2"
    with contextlib.closing(sqlite3.connect(tmp_path / "home" / "mlflow.db")) as connection:
        kept = "\n".join(connection.iterdump())
    assert run in kept and "example.org/guide.xml.gz" in kept and "guides/what?.xml" in kept
    assert [secret for secret in SECRETS if secret in kept] == []


def test_a_night_keeps_one_blas_thread_when_a_library_changes_it(running, tmp_path):
    """As scikit-learn's search does in a baseline, it limits the whole process for a while."""

    def threads() -> set[int]:
        return {own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        with disable_run_logger(), night.open_night(str(tmp_path / "home"), FEEDS, Settings()):
            before = threads()
            with threadpool_limits(1, user_api="blas"):
                during = threads()
            assert before == during == threads() == {1}
        assert threads() == {2}


def test_a_night_ends_the_mlflow_run_of_a_killed_night(running, tmp_path):
    home = tmp_path / "home"
    dead = Tracking(home).start_run("flow-0", "died with its worker")
    with disable_run_logger(), night.open_night(str(home), FEEDS, Settings()) as opened:
        client = opened.tracking.mlflow.client
        assert [client.get_run(run).info.status for run in (dead, opened.run)] == ["KILLED", "RUNNING"]


@pytest.mark.parametrize(
    ("name", "purpose", "options"),
    [
        ("nightly", "nightly run", {}),
        ("tune", "tuning run", {}),
        ("ablate", "ablation run", {"ablation": AblationSettings(workers=1)}),
    ],
)
def test_the_lock_of_the_home_names_the_kind_of_run(running, tmp_path, monkeypatch, name, purpose, options):
    module = importlib.import_module(f"flows.{name}")

    def raise_holder(home, *_):
        raise ValueError(Workspace(home).holder())

    monkeypatch.setattr(module, "ingest", raise_holder)
    with disable_run_logger(), pytest.raises(ValueError, match=rf"\({purpose} of 3 feeds\)$"):
        getattr(module, name).fn(FEEDS, home=str(tmp_path / "home"), **options)


@pytest.mark.parametrize(("error", "times"), [(Pause(), 2), (ValueError("a feed"), 1)])
def test_a_suspended_run_sends_its_event_twice(running, tmp_path, monkeypatch, error, times):
    said = []
    monkeypatch.setattr(night, "emit_event", lambda event, resource: said.append((event, *resource.values())))
    context = SimpleNamespace(task_runner=ThreadPoolTaskRunner())
    monkeypatch.setattr(night, "FlowRunContext", SimpleNamespace(get=lambda: context))
    monkeypatch.setattr(night, "RESEND_SECONDS", 0.0)
    opening = night.open_night(str(tmp_path / "home"), FEEDS, Settings())
    with disable_run_logger(), pytest.raises(type(error)), opening:
        raise error
    assert said == [(night.RUN_ENDED_EVENT, "prefect.flow-run.flow-1")] * times


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("catching up", True),
        ("adamant-otter", False),
        ("", False),
        ("beta485-ixtelha", False),
        ("upsilon3-sabacche-v", False),
        ("beta-2", True),
    ],
)
def test_names_set_by_the_user_are_not_replaced(running, given, kept):
    running.name = given
    assert (night.name_run() == given) is kept


def test_names_that_prefect_generates_are_recognized():
    assert all(night.GENERATED_NAME.fullmatch(generate_slug(2)) for _ in range(1000))


def test_a_tilde_in_the_path_of_the_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with disable_run_logger(), night.open_night("~/space", [], Settings()):
        pass
    assert Tracking("~/space").mlflow.database == tmp_path / "space" / "mlflow.db"
    assert (tmp_path / "space" / "mlflow.db").exists() and not (tmp_path / "~").exists()
