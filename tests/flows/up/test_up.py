"""``guidespace up``: real servers, a night, and the clean-up after kills."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from flows.up.network import NetworkError, check_host, choose_port, describe_listener
from flows.up.processes import UP_HOME, ProcessIdentity, terminate
from tests.contents import night_contents
from tests.flows.command import QUICK_NIGHT, ROOT, guidespace
from tests.flows.up_process import standing, until

PASSWORDS = {
    "PREFECT_SERVER_API_AUTH_STRING": "ann:k8s",
    "MLFLOW_AUTH_ADMIN_USERNAME": "ann",
    "MLFLOW_AUTH_ADMIN_PASSWORD": "a long password",
}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_night_and_the_clean_up_after_a_kill(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with standing(home) as up:
        assert {each["name"] for each in up.record["processes"]} == {"Prefect", "MLflow", "worker"}
        again = guidespace("up", "--home", home)
        assert again.returncode == 0
        assert up.record["prefect"] in again.stdout and f"process {up.process.pid}" in again.stdout
        doctor = guidespace("doctor", "--home", home).stdout
        assert f"`guidespace up` has been running since {up.record['since']}" in doctor

        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {}):
            foreign = httpx.post(f"{up.record['prefect']}/api/deployments/filter", json={}, headers=headers)
            assert foreign.status_code == 403, headers
        deployments = {each["name"]: each for each in up.post("/deployments/filter")}
        assert deployments["nightly"]["parameters"]["home"] == str(home)
        assert deployments["nightly-smoke"]["parameters"]["home"] == str(home / "smoke")
        assert deployments["nightly"]["global_concurrency_limit"]["limit"] == 2
        assert [each["enabled"] for each in up.post("/automations/filter")] == [True]
        long = {"changes": [*QUICK_NIGHT, "train.epochs=120"]}
        night = up.trigger("nightly-smoke", long)
        log = home / "logs" / "worker.log"
        up.wait(night)
        query = {"experiment_ids": ["1"], "filter": f"tags.`prefect.flow_run_id` = '{night}'"}
        (run,) = httpx.post(f"{up.record['mlflow']}/api/2.0/mlflow/runs/search", json=query).json()["runs"]
        assert run["info"]["status"] == "FINISHED" and run["info"]["artifact_uri"].startswith(
            f"{home}/mlflow/"
        )
        links = up.post("/artifacts/filter", {"artifacts": {"key": {"any_": ["mlflow-run"]}}})
        assert f"]({up.record['mlflow']}/#/experiments/1/runs/{run['info']['run_id']}" in links[0]["data"]
        until(
            lambda: "Completed: version 1 is champion" in up.printed.read_text(encoding="utf-8"),
            up.printed.read_text,
        )

        edited = {"parameters": {"feeds": ["env:MY_GUIDE"], "home": str(home)}}
        about = deployments["nightly"]["id"]
        up.patch(f"/deployments/{about}", edited)
        killed = up.trigger("nightly-smoke", {"home": str(home / "other"), **long})
        until(
            lambda: "epoch 3 of" in log.read_text(encoding="utf-8").partition(f"/runs/flow-run/{killed}")[2],
            up.printed.read_text,
        )
        left = up.tree()
        up.process.kill()
        up.process.wait()
        assert len(left) >= 5 and all(each.is_running() for each in left)
        assert (
            "an earlier `guidespace up` was killed and left Prefect (process"
            in guidespace("doctor", "--home", home).stdout
        )
        first = up.record

        with standing(home) as second:
            assert (
                "Ended Prefect, MLflow, worker, which an earlier `guidespace up` had left running"
                in second.printed.read_text(encoding="utf-8")
            )
            assert not any(each.is_running() for each in left)
            assert (second.record["prefect"], second.record["mlflow"]) == (first["prefect"], first["mlflow"])
            assert second.get(f"/flow_runs/{killed}")["state_name"] == "Crashed"
            state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
            second.post(f"/flow_runs/{killed}/set_state", {"state": state, "force": True})
            second.wait(killed)
            assert "resuming after epoch" in log.read_text(encoding="utf-8")
            assert night_contents(home / "other") == night_contents(home / "smoke")
            kept = second.get("/deployments/name/nightly/nightly")
            assert kept["parameters"] == edited["parameters"]
            assert [each["slug"] for each in kept["schedules"]] == ["every-night"]
            everything = second.tree()
            (mlflow,) = (each["pid"] for each in second.record["processes"] if each["name"] == "MLflow")
            os.kill(mlflow, signal.SIGKILL)
            assert second.process.wait(60) == 1
            printed = second.printed.read_text(encoding="utf-8")
            assert "guidespace: MLflow ended by SIGKILL; the last lines of" in printed
            assert not any(each.is_running() for each in everything), printed
    assert json.loads((home / "up.json").read_text(encoding="utf-8"))["processes"] == []


@pytest.mark.slow
def test_sigterm_during_the_start_leaves_no_process(tmp_path: Path) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-m", "flows", "up", "--home", str(home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8") as up:
        record = home / "up.json"
        until(
            lambda: record.exists() and "deployments" in record.read_text(encoding="utf-8"),
            lambda: "no process started",
        )
        started = [
            psutil.Process(each["pid"])
            for each in json.loads(record.read_text(encoding="utf-8"))["processes"]
        ]
        up.send_signal(signal.SIGTERM)
        printed = up.communicate(timeout=60)[0]
    assert up.returncode == 0 and "All processes have stopped" in printed
    assert started and not any(each.is_running() for each in started)


def test_a_process_with_a_used_id_is_not_ours() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        ours = ProcessIdentity.from_pid("other", other.pid)
        former = ProcessIdentity("former", other.pid, ours.started - 60)
        assert former.find() is None and terminate([former]) == [] and other.poll() is None
        assert terminate([ours]) == ["other"] and ours.find() is None


def test_processes_that_a_killed_process_left_are_ended(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, UP_HOME: str(tmp_path / "home")}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=pipe, stdout=pipe, env=environment, start_new_session=True
    ) as first:
        assert first.stdout is not None
        left = psutil.Process(int(first.stdout.readline()))
        ours = ProcessIdentity.from_pid("first", first.pid, str(tmp_path / "home"))
        of_another_home = ProcessIdentity.from_pid("first", first.pid, str(tmp_path / "other"))
        until(left.environ, str)  # empty while the kernel still loads it
        first.kill()
        first.wait()
        assert terminate([of_another_home, ProcessIdentity("first", first.pid, ours.started)]) == []
        assert left.is_running() and left.status() != psutil.STATUS_ZOMBIE
        assert terminate([ours]) == ["first"]
        assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE


def test_ports_that_are_chosen_in_use_or_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        who = f"process {os.getpid()} \\("
        assert f"process {os.getpid()} (" in str(describe_listener(taken))
        with pytest.raises(NetworkError, match=f"--prefect-port {taken} is in use by {who}.*omit --pref"):
            choose_port("--prefect-port", taken, 0, taken, "127.0.0.1")
        chosen = choose_port("--prefect-port", 0, 0, taken, "127.0.0.1")
        assert chosen not in (0, taken)
    assert choose_port("--prefect-port", 0, taken, 1, "127.0.0.1") == taken
    assert describe_listener(taken) is None
    with pytest.raises(NetworkError, match=r"cannot listen on 192\.0\.2\.1"):
        choose_port("--prefect-port", 0, 0, 4200, "192.0.2.1")


def test_other_machines_need_passwords(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        check_host(host, {})
    for left_out in PASSWORDS:
        environment = {name: value for name, value in PASSWORDS.items() if name != left_out}
        with pytest.raises(NetworkError, match=f"reachable from other machines.*set {left_out}"):
            check_host("0.0.0.0", environment)
    with pytest.raises(NetworkError, match="PREFECT_SERVER_API_AUTH_STRING=USER:PASSWORD"):
        check_host("::", PASSWORDS | {"PREFECT_SERVER_API_AUTH_STRING": "ann:"})
    done = guidespace("up", "--host", "0.0.0.0", "--home", tmp_path / "home")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "--host 0.0.0.0" in done.stderr
