"""Commands on a home with a smoke run of the sample guide."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.flows.command import ROOT, SAMPLE, answer, guidespace

METRICS = {"accuracy", "micro_f1", "macro_f1", "precision_at_k", "mrr"}


def test_nightly_prints_progress_and_paths_of_results(night):
    home, output = night
    for stage in (
        "ingest",
        "tokenize",
        "preprocess",
        "train",
        "augment",
        "embed",
        "neighbours",
        "layout",
        "cluster",
        "evaluate",
        "draw",
        "pack",
        "promote",
    ):
        assert any(f" {stage} " in line for line in output.splitlines()), stage
    paths = {
        line.split(":", 1)[0]: line.split(":", 1)[1].split()[0]
        for line in output.splitlines()
        if line.startswith(("The map:", "The scores:"))
    }
    assert Path(paths["The map"]).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(Path(paths["The scores"]).read_text(encoding="utf-8"))["protocols"]
    assert f"sqlite:///{home}/mlflow.db" in output


def test_everything_a_run_writes_is_in_the_home(night):
    home, _ = night
    assert {
        "home.json",
        "catalogue.duckdb",
        "artifacts",
        "mlflow.db",
        "mlflow",
        "status.json",
        "latest.json",
    } <= {path.name for path in home.iterdir()}


def test_categories_are_those_of_the_corpus_with_a_reason_each(night):
    home, _ = night
    document = answer("categories", "--home", home, "--json")
    assert set(document) == {"labels", "dropped"} and len(document["labels"]) > 5
    corpus = home / json.loads((home / "latest.json").read_text(encoding="utf-8"))["corpus"]
    names = json.loads((corpus / "label_names.json").read_text(encoding="utf-8"))
    assert {label["category"] for label in document["labels"]} == set(names)
    counts = [label["titles"] for label in document["labels"]]
    assert counts == sorted(counts, reverse=True) and counts[-1] >= 20
    assert document["dropped"] == pq.read_table(corpus / "dropped_categories.parquet").to_pylist() != []
    assert {"series", "entertainment"} & {
        row["category"] for row in document["dropped"] if row["reason"] == "generic"
    }
    assert not {
        row["category"] for row in document["dropped"] if row["reason"] != "on too many titles of a feed"
    } & set(names)
    printed = guidespace("categories", "--home", home)
    assert printed.returncode == 0 and f"{len(names)} labels (category, titles):" in printed.stdout
    for row in document["dropped"][:3]:
        assert f"dropped, {row['reason']}: " in printed.stdout and row["category"] in printed.stdout


def test_scores_have_the_documented_form(night):
    document = answer("scores", "--home", night[0], "--json")
    assert (
        set(document) == {"protocols", "k", "clusters", "unseen_words", "kinds", "confidence", "champion"}
        and document["champion"] is True
    )
    assert set(document["protocols"]) == {"unseen_title", "unseen_show", "next_period"}
    for forms in document["protocols"].values():
        assert set(forms) == {"title_only", "title_context"}
        for scores in forms.values():
            rivals = {
                "majority",
                "tfidf_knn",
                "l1_logistic",
                "tfidf_svm",
                "sentence_knn",
                "tfidf_svm_sentence",
            }
            assert scores["n"] > 30 and {"knn", "knn_oov"} | rivals <= set(scores)
            for rival in ("knn", "majority", "tfidf_knn", "tfidf_svm"):
                assert METRICS | {"ci95"} <= set(scores[rival])
                low, high = scores[rival]["ci95"]["accuracy"]
                assert 0 <= low <= scores[rival]["accuracy"] <= high <= 1
            assert (
                scores["tfidf_svm"]["precision_at_k"] is None and scores["majority"]["precision_at_k"] is None
            )
            assert scores["knn"]["accuracy"] > scores["majority"]["accuracy"]
        assert (
            forms["title_context"]["knn"]["accuracy"] > forms["title_only"]["knn"]["accuracy"]
        )  # where it airs tells what it is
    assert {"count", "noise_share", "ari", "ami", "v_measure", "b_cubed", "run_to_run_ari"} <= set(
        document["clusters"]
    )
    assert document["clusters"]["count"] > 5
    sure = document["confidence"]
    assert sure["n"] > 100 and 0 < sure["brier_score"] < 0.25 and sure["expected_calibration_error"] < 0.15
    assert sure["asked_0.8"]["coverage"] >= sure["asked_0.9"]["coverage"] > 0.2
    assert sure["asked_0.9"]["precision"] > 0.8


def test_printed_scores_contain_every_protocol_and_form(night):
    done = guidespace("scores", "--home", night[0])
    assert done.returncode == 0
    for words in (
        "unseen_title, title only (",
        "TF-IDF linear SVM",
        "next_period, title context (",
        "this model is the champion",
    ):
        assert words in done.stdout


def test_status_counts_add_up(night):
    document = answer("status", "--home", night[0], "--json")
    totals = {"channels", "programmes", "titles", "categories"}
    assert set(document) == totals | {"feeds", "failures", "home", "home_bytes"}
    assert document["failures"] == []
    assert (
        document["home"] == str(night[0])
        and document["home_bytes"] > (night[0] / "catalogue.duckdb").stat().st_size
    )
    (feed,) = document["feeds"]
    counts = {"seen", "stored", "duplicates", "rejected", "rejects", "invalid_bytes"}
    assert set(feed) == {"source", *counts} and feed["source"] == str(SAMPLE)
    assert feed["seen"] == feed["stored"] + feed["duplicates"] + feed["rejected"]
    assert feed["rejected"] == sum(feed["rejects"].values()) > 0
    assert document["programmes"] == feed["stored"]
    assert document["titles"] > 1500 and document["channels"] > 35


@pytest.mark.parametrize("title", ["Midsomer Murders", "A Murder Nobody Ever Filmed"])
def test_similar_answers_for_known_and_unknown_titles(night, title):
    neighbours = answer("similar", title, "--home", night[0], "-k", 7, "--json")
    assert len(neighbours) == 7
    assert all(
        set(neighbour) == {"title", "cosine", "categories", "channels", "editions", "kinds"}
        for neighbour in neighbours
    )
    cosines = [neighbour["cosine"] for neighbour in neighbours]
    assert cosines == sorted(cosines, reverse=True) and all(-1 <= cosine <= 1 for cosine in cosines)
    assert title not in {neighbour["title"] for neighbour in neighbours}
    assert "crime" in {category for neighbour in neighbours for category in neighbour["categories"]}


@pytest.mark.slow
def test_similar_refuses_what_it_cannot_answer(night):
    for arguments, words in ((("x", "-k", "0"), "k must be"), (("☃☃☃",), "nothing is known of the title")):
        done = guidespace("similar", *arguments, "--home", night[0])
        assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_export_labels_can_be_read_as_fasttext_lines(night, tmp_path):
    assert guidespace("export", "--home", night[0], "--format", "labels", tmp_path / "corpus").returncode == 0
    train, test = (
        (tmp_path / "corpus" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        for name in ("train", "test")
    )
    assert len(train) > 1000 and len(test) > 150
    for line in train + test:
        labels = [word for word in line.split(" ") if word.startswith("__label__")]
        assert labels and line.split(" ")[: len(labels)] == labels and len(line.split(" ")) > len(labels)
    held_out = [
        line
        for name in ("unseen_title", "unseen_show", "next_period")
        for line in (tmp_path / "corpus" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    ]
    assert sorted(held_out) == sorted(test)


@pytest.mark.slow
def test_export_vectors_agree_in_both_forms(night, tmp_path):
    assert (
        guidespace("export", "--home", night[0], "--format", "word2vec", tmp_path / "v.txt").returncode == 0
    )
    assert (
        guidespace("export", "--home", night[0], "--format", "parquet", tmp_path / "v.parquet").returncode
        == 0
    )
    lines = (tmp_path / "v.txt").read_text(encoding="utf-8").splitlines()
    count, dim = map(int, lines[0].split())
    assert (
        count == len(lines) - 1
        and dim == 128 + 32
        and len({line.split(" ")[0] for line in lines[1:]}) == count
    )
    table = pq.read_table(tmp_path / "v.parquet")
    vectors = dict(zip(table["title"].to_pylist(), table["vector"].to_pylist(), strict=True))
    for line in lines[1:50]:
        name, *values = line.split(" ")
        assert len(values) == dim
        if (title := name.replace("_", " ")) in vectors:
            np.testing.assert_allclose([float(value) for value in values], vectors[title], atol=1e-5)


def test_doctor_reports_no_problems_as_json(night):
    findings = answer("doctor", "--home", night[0], "--json")
    assert {finding["state"] for finding in findings} <= {"ok", "note"}
    assert {"Python", "prefect", "torch", "fastapi", "home", "catalogue"} <= {
        finding["about"] for finding in findings
    }


@pytest.mark.slow
def test_doctor_names_a_home_of_another_version(tmp_path):
    (tmp_path / "home.json").write_text('{"layout_version": 99}', encoding="utf-8")
    done = guidespace("doctor", "--home", tmp_path)
    assert done.returncode == 1 and "layout version 99" in done.stdout


@pytest.mark.slow
def test_commands_in_a_home_without_a_run_recommend_nightly(tmp_path):
    for command in (
        ("scores",),
        ("similar", "Tatort"),
        ("status",),
        ("export", "--format", "parquet", tmp_path / "x"),
    ):
        done = guidespace(*command, "--home", tmp_path / "none")
        assert done.returncode == 2 and "guidespace nightly" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "none").exists()


def test_help_imports_no_large_packages():
    heavy = "{'torch', 'prefect', 'mlflow', 'duckdb'}"
    code = "from flows.cli.main import main, sys\nassert main(['--help']) == 0\n"
    code += f"assert not {heavy} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and "similar " in done.stdout, done.stderr
    assert "..." not in done.stdout.partition("Commands:")[2]  # no summary is cut


HEAVY = {"torch", "prefect", "mlflow", "numba", "scipy", "sklearn"}  # half a gigabyte and seconds


def test_commands_without_training_import_no_large_packages(night, tmp_path):
    home, new = night[0], tmp_path / "home"
    (tmp_path / "guide-2025-03-01.xml").write_text(
        '<tv><programme channel="one" start="20250301100000"><title>News</title></programme></tv>',
        encoding="utf-8",
    )
    commands = [
        ["ingest", "--feed", tmp_path / "guide-2025-03-01.xml", "--home", new],
        ["backfill", "--feed", tmp_path, "--home", new, "--from", "2025-03-01", "--to", "2025-03-01"],
        ["status", "--home", home],
        ["sql", "SELECT count(*) FROM titles", "--home", home],
        ["scores", "--home", home],
        ["similar", "Midsomer Murders", "--home", home],
        ["similar", "A Title That Is New", "--home", home],
        ["explain", "Midsomer Murders", "--home", home],
        ["enrich", tmp_path / "guide-2025-03-01.xml", tmp_path / "filled.xml", "--home", home],
    ]  # fmt: skip
    code = "from flows.cli.main import main, sys\n"
    for command in commands:
        code += f"assert main({[str(word) for word in command]}) == 0\n"
        code += f"found = {HEAVY} & set(sys.modules)\nassert not found, ({command[0]!r}, found)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=100
    )
    assert done.returncode == 0, done.stderr


def test_the_nightly_flow_and_its_settings_import_nothing_that_only_stages_need():
    """An unchanged night runs no stage; before, it spent 1.7 of 5.9 CPU seconds on importing PyTorch."""
    code = "import sys, flows.nightly\n"
    code += "from flows.settings import PRESETS, choose_settings\n"
    code += "for preset in PRESETS: choose_settings(preset, [], [])\n"
    code += f"assert not {HEAVY - {'prefect'}} & set(sys.modules), {HEAVY - {'prefect'}} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_unchanged_night_imports_nothing_that_only_stages_need(copy_night, tmp_path):
    command = ["nightly", "--feed", str(SAMPLE), "--home", str(copy_night(tmp_path / "home"))]
    code = f"from flows.cli.main import main, sys\nassert main({[*command, '--preset', 'smoke']}) == 0\n"
    code += f"print('imported', {HEAVY} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and "train       unchanged, reused" in done.stdout, done.stderr
    imported = done.stdout.rpartition("imported")[2]
    assert not any(name in imported for name in ("torch", "numba", "sklearn")), imported
