"""Results of a night in MLflow and on the page of its Prefect run."""

import contextlib
import csv
import json
import sqlite3

import pytest

from tests.flows.command import SAMPLE, answer, guidespace


def test_the_data_checks_arrive_in_mlflow(night):
    with contextlib.closing(sqlite3.connect(night[0] / "mlflow.db")) as connection:
        found = dict(
            connection.execute("SELECT key, value FROM latest_metrics WHERE key LIKE 'guide/%'").fetchall()
        )
    assert set(found) == {
        f"guide/{name}"
        for name in (
            "programmes",
            "category_share",
            "channels_a_day",
            "gaps",
            "overlaps",
            "new_titles",
            "anomalies",
        )
    }
    assert found["guide/programmes"] == answer("status", "--home", night[0], "--json")["programmes"]
    assert 0.5 < found["guide/category_share"] <= 1 and found["guide/new_titles"] > 0


def test_mlflow_has_the_headline_first_no_intervals_and_pages_instead_of_raw_plots(night):
    home, _ = night
    with contextlib.closing(sqlite3.connect(home / "mlflow.db")) as connection:
        names = {name for (name,) in connection.execute("SELECT key FROM latest_metrics")}
        of_model = dict(
            connection.execute(
                "SELECT metric_name, metric_value FROM logged_model_metrics WHERE dataset_name = 'guide'"
            )
        )
        of_run = dict(
            connection.execute("SELECT key, value FROM latest_metrics WHERE key LIKE 'at_a_glance/%'")
        )
    figures = {name.removeprefix("at_a_glance/") for name in of_run}
    assert of_model == pytest.approx(of_run)
    assert sorted(names)[: len(of_model)] == sorted(of_model)  # MLflow's page goes by the alphabet
    assert {"quality", "accuracy", "precision_at_k", "clusters", "programmes"} <= figures
    assert "quality_difference" not in figures
    assert not any("ci95" in name for name in names) and len(names) < 450
    (artifacts,) = {file.parent for file in (home / "mlflow").rglob("map.html")}
    assert {file.name for file in artifacts.iterdir()} == {
        "map.html",
        "artifacts.html",
        "model_card.md",
        "nights.html",
        "report.md",
        "plots.html",
        "scores.json",
        "dropped_categories.csv",
        "evaluation.json",
    }
    assert "ci95" in (artifacts / "scores.json").read_text(encoding="utf-8")


def test_the_page_of_the_run_has_the_report_and_its_state_the_verdict(night):
    (database,) = night[0].rglob("prefect.db")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        ((run, of_task, text, about),) = connection.execute(
            "SELECT flow_run_id, task_run_id, data, description FROM artifact WHERE key = 'nightly-report'"
        ).fetchall()
        ((message,),) = connection.execute(
            "SELECT message FROM flow_run_state WHERE flow_run_id = ? AND type = 'COMPLETED'", [run]
        ).fetchall()
    assert run and of_task is None
    assert message == about and message.startswith("version 1 is champion: quality 0.")
    assert "map.html" in text and "| largest | titles |" in text


def test_dropped_categories_arrive_in_mlflow_and_prefect(night):
    home, _ = night
    rows = answer("categories", "--home", home, "--json")["dropped"]
    (file,) = (home / "mlflow").rglob("dropped_categories.csv")
    with open(file, encoding="utf-8", newline="") as opened:
        assert [{**row, "titles": int(row["titles"])} for row in csv.DictReader(opened)] == rows
    with contextlib.closing(sqlite3.connect(home / "mlflow.db")) as connection:
        metrics = dict(
            connection.execute(
                "SELECT key, value FROM latest_metrics WHERE key LIKE 'dropped_categories/%'"
            ).fetchall()
        )
    assert metrics == {
        f"dropped_categories/{reason}": sum(row["reason"] == reason for row in rows)
        for reason in {row["reason"] for row in rows}
    }
    (database,) = home.rglob("prefect.db")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        ((kind, data, about),) = connection.execute(
            "SELECT type, data, description FROM artifact WHERE key = 'dropped-categories'"
        ).fetchall()
    table = json.loads(data)
    assert kind == "table" and (json.loads(table) if isinstance(table, str) else table) == rows[:200]
    assert about.startswith(f"{len(rows):,} categories dropped: ")


def cluster_metrics(home):
    """Returns the cluster metrics of the last run in MLflow, without the prefix of the group."""
    with contextlib.closing(sqlite3.connect(home / "mlflow.db")) as connection:
        (run,) = connection.execute("SELECT run_uuid FROM runs ORDER BY start_time DESC LIMIT 1").fetchone()
        rows = connection.execute(
            "SELECT key, value FROM latest_metrics WHERE key LIKE 'clusters/%' AND run_uuid = ?", [run]
        ).fetchall()
    return {key.removeprefix("clusters/"): value for key, value in rows}


def cluster_scores(home):
    """Returns the same scores from the score document, without those that are null."""
    clusters = answer("scores", "--home", home, "--json")["clusters"]
    deeper = {
        f"{name}/{inner}": number
        for name, value in clusters.items()
        if isinstance(value, dict)
        for inner, number in value.items()
    }
    return {name: number for name, number in (clusters | deeper).items() if isinstance(number, int | float)}


def test_the_agreement_of_clusters_arrives_in_mlflow(night):
    found = cluster_metrics(night[0])
    assert found == pytest.approx(cluster_scores(night[0]))
    scores = {"ari", "ami", "v_measure", "b_cubed", "b_cubed_precision", "b_cubed_recall", "n"}
    assert scores | {
        f"{reading}/{score}" for reading in ("non_noise", "held_out") for score in scores
    } <= set(found)
    assert {"noise_share", "count", "run_to_run_ari", "neighbour_recall"} | {
        f"sizes/{size}" for size in ("smallest", "median", "largest", "largest_share")
    } <= set(found)
    assert "stayed_share" not in found  # there is no yesterday


@pytest.mark.slow
def test_a_second_night_reports_the_share_of_titles_that_stayed_in_their_cluster(copy_night, tmp_path):
    home = copy_night(tmp_path / "home")
    arguments = ("--feed", SAMPLE, "--home", home, "--preset", "smoke", "--set", "cluster.seed=5")
    assert guidespace("nightly", *arguments).returncode == 0
    found = cluster_metrics(home)
    assert found == pytest.approx(cluster_scores(home))
    assert 0.5 < found["stayed_share"] <= 1 and found["run_to_run_ari"] > 0.5
