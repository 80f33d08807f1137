"""The comparison of optimizers on the sample guide, as the command runs it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage.stages import ROOT
from storage.tracking import Tracking

SMALL = (
    "--optimizers",
    "adam",
    "rowwise_adagrad",
    "--sizes",
    "8",
    "16",
    "--rates",
    "0.3",
    "1",
    "--set",
    "train.epochs=2",
)


COMMAND = [sys.executable, "-m", "flows", "tune"]
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PREFECT_", "MLFLOW_", "GUIDESPACE_HOME"))
}


@pytest.fixture
def served(prefect_url: str, tmp_path: Path) -> dict[str, str]:
    """Environment in which commands use a Prefect server instead of starting one."""
    return {**ENVIRONMENT, "PREFECT_API_URL": f"{prefect_url}/api", "PREFECT_HOME": f"{tmp_path}/prefect"}


def guidespace(
    *arguments: str, environment: dict[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )


@pytest.mark.slow
def test_one_parent_with_children_a_table_and_a_plot(served: dict[str, str], tmp_path: Path):
    """The mapping of categories counts as in a night."""
    home, mapping = tmp_path / "home", tmp_path / "mapping.csv"
    mapping.write_text("raw,canonical\nkrimi,whodunit\ncomedy,funny\n", encoding="utf-8")
    small = *SMALL, f"preprocess.category_mapping={mapping}"
    done = guidespace(
        "--feed", str(ROOT / "sample" / "guide.xml.gz"), "--home", str(home), *small, environment=served
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The presets use rowwise_adagrad: score 0." in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| 8 |", "| 16 |"))]
    assert len(rows) == 4

    tracking = Tracking(home)
    runs = tracking.mlflow.client.search_runs([tracking.mlflow.experiment_id])
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert {run.info.run_name for run in children} == {
        f"{rule} {size}" for rule in ("adam", "rowwise_adagrad") for size in (8, 16)
    }
    assert len(runs) == 5 and all(run.info.status == "FINISHED" for run in runs)
    adam = next(run for run in children if run.info.run_name == "adam 16")
    losses, scores = (
        tracking.mlflow.client.get_metric_history(adam.info.run_id, name) for name in ("loss", "score")
    )
    assert len(losses) == len(scores) == 2 and losses[0].step < losses[1].step
    assert parent.data.metrics["score/16/adam"] == pytest.approx(scores[-1].value)
    assert {"tuning.md", "tuning.html", "runs.json"} <= {
        file.path for file in tracking.mlflow.client.list_artifacts(parent.info.run_id)
    }
    courses = json.loads(
        Path(tracking.mlflow.client.download_artifacts(parent.info.run_id, "runs.json")).read_text(
            encoding="utf-8"
        )
    )
    assert len(courses) == 2 * 2 * 2
    steps = {tuple(mark["step"] for mark in course["marks"]) for course in courses if not course["trouble"]}
    assert len(steps) == 1  # the same batches for all
    (names,) = home.glob("artifacts/corpus/*/label_names.json")
    labels = json.loads(names.read_text(encoding="utf-8"))
    assert {"whodunit", "funny"} <= set(labels) and not {"krimi", "comedy"} & set(labels)


@pytest.mark.slow
def test_an_unknown_optimizer_is_an_error(tmp_path: Path):
    done = guidespace(
        "--feed",
        str(ROOT / "sample" / "guide.xml.gz"),
        "--home",
        str(tmp_path / "home"),
        "--optimizers",
        "adamm",
    )
    assert (
        done.returncode == 2
        and "no optimizer is called adamm; the optimizers are sgd" in done.stderr
        and "Traceback" not in done.stderr
    )


@pytest.mark.slow
def test_searches_run_in_parallel_and_log_their_tables(served: dict[str, str], tmp_path: Path):
    home = tmp_path / "home"
    short = "tuning.budget=4", "tuning.workers=2", "train.epochs=2"
    population = '[{"name":"esgd","population":3,"elite":2,"offspring":2},{"name":"random"}]'
    done = guidespace(
        *("--feed", str(ROOT / "sample" / "guide.xml.gz"), "--home", str(home), "--sizes", "8"),
        *("--optimizers", "sgd", "adam"),
        *("--set", *short, f"tuning.searches={population}"),
        environment=served,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split("|")[2].strip() for line in done.stdout.splitlines() if line.startswith("| 8 |")]
    assert sorted(rows) == ["esgd", "random"]

    tracking = Tracking(home)
    runs = {
        run.info.run_name: run for run in tracking.mlflow.client.search_runs([tracking.mlflow.experiment_id])
    }
    files = tracking.mlflow.client.list_artifacts(runs["esgd 8"].info.run_id)
    assert {"rounds.csv", "rounds.html"} <= {file.path for file in files}
    history = tracking.mlflow.client.get_metric_history(runs["esgd 8"].info.run_id, "best_score")
    best = [point.value for point in sorted(history, key=lambda point: point.step)]
    assert len(best) == 2 and best == sorted(best)
    (parent,) = (run for run in runs.values() if "mlflow.parentRunId" not in run.data.tags)
    named = {file.path for file in tracking.mlflow.client.list_artifacts(parent.info.run_id)}
    assert "searches.md" in named
    assert len(list(home.glob("artifacts/checkpoint/*/checkpoint.safetensors"))) == 1
    assert not list(home.glob("artifacts/checkpoint/*.partial"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_search_continues_after_its_last_generation_in_processes(
    served: dict[str, str], tmp_path: Path
):
    """SIGKILL after the first of three generations, trained in threads; the others in processes."""
    members = '[{"name":"esgd","population":2,"elite":1,"parents":2,"offspring":1}]'
    arguments = [
        *("--feed", str(ROOT / "sample" / "guide.xml.gz"), "--home", str(tmp_path / "home"), "--sizes", "8"),
        *("--optimizers", "sgd", "adam", "--set", "tuning.budget=3", "train.epochs=2"),
        *("tuning.workers=2", f"tuning.searches={members}"),
    ]
    first = subprocess.Popen(
        [*COMMAND, *arguments], cwd=ROOT, env=served, stdout=subprocess.PIPE, encoding="utf-8"
    )
    with first:
        assert first.stdout and any("round 1 of 3" in line for line in first.stdout)
        first.kill()
    assert first.returncode == -signal.SIGKILL
    (journal,) = (tmp_path / "home").glob("artifacts/checkpoint/*.partial/journal.json")
    before = json.loads(journal.read_text(encoding="utf-8"))["rounds"]
    done = guidespace(*arguments, "tuning.pool=processes", environment=served)
    assert done.returncode == 0, done.stdout + done.stderr
    rounds = [line.split("round ")[1][0] for line in done.stdout.splitlines() if "  round " in line]
    assert rounds == ["1", "2", "3"][len(before) :]
    assert "| 8 | esgd | " in done.stdout and "processes, 2 at a time" in done.stdout
    assert not journal.exists()


@pytest.mark.slow
def test_processes_of_a_run_find_its_prefect_server(tmp_path: Path):
    """Otherwise each starts one of its own."""
    code = "import os, flows.server as s; s.start_prefect('.')(); print(os.environ['PREFECT_API_URL'])"
    own = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=own, capture_output=True, encoding="utf-8"
    )
    assert done.stdout.startswith("http://127.0.0.1:"), done.stderr
