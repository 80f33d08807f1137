"""The ablation: its plan, and the flow on the sample guide."""

import datetime
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from prefect import flow  # noqa: F401  (sets logging up)

from flows.label_sources import read_label_sources
from flows.settings import LAPTOP, PRESETS
from storage.artifacts import TrialPredictions
from storage.catalogue.connection import Catalogue
from storage.catalogue.corrections import store_correction
from storage.home.corrections import Correction
from storage.stages import ROOT, import_closure
from storage.tracking import Tracking
from tasks.ablate.blocks import BLOCKS
from tasks.ablate.plan import plan_ablation
from tasks.ablate.settings import AblationSettings
from tasks.overrides import SettingError, override
from tests.flows.command import SAMPLE, guidespace


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_every_block_changes_the_presets(block):
    assert override(LAPTOP, block.changes) != LAPTOP


def test_a_trial_for_the_preset_and_each_block_on_each_fold_with_each_seed():
    chosen = AblationSettings(blocks=("n-grams", "scaling", "clusterer"), seeds=2, folds=3)
    plan = plan_ablation(LAPTOP, chosen)
    assert [block.name for block in plan.blocks] == ["n-grams", "scaling", "clusterer"]
    found = plan.group_predictions(
        TrialPredictions(path=trial.learning.name, digest="") for trial in plan.trials
    )
    assert list(found) == ["preset", "preset clusters", "n-grams", "scaling", "clusterer"]
    assert [[own.path for own in fold] for fold in found["n-grams"]] == [
        [f"n-grams {fold}/{seed}" for seed in (1, 2)] for fold in (1, 2, 3)
    ]
    made = {trial.block: set() for trial in plan.trials}
    for trial in plan.trials:
        made[trial.block].add(trial.corpus)
        assert (trial.learning.cluster is None) == (trial.block not in ("preset clusters", "clusterer"))
    assert made["n-grams"] == made["preset"] == made["clusterer"] and len(made["preset"]) == 3
    assert made["scaling"].isdisjoint(made["preset"])
    first = plan.trials[0].learning
    assert plan.trials[1].learning.train == replace(first.train, seed=first.train.seed + 1)


def test_ineffective_blocks_are_skipped_and_changes_are_validated():
    bare = override(LAPTOP, ["train.encoder.hour=0", "train.objective=leave_one_out_softmax"])
    plan = plan_ablation(bare, AblationSettings(blocks=("hour", "temperature", "edge")))
    assert plan.ineffective_blocks == ["hour", "temperature"] and [block.name for block in plan.blocks] == [
        "edge"
    ]
    with pytest.raises(SettingError, match="no_such"):
        plan_ablation(LAPTOP, AblationSettings(blocks=("train.no_such=1",)))


def test_a_corpus_contains_corrections_up_to_its_instant(tmp_path):
    noon = datetime.datetime(2025, 3, 1, 12, tzinfo=datetime.UTC)
    made = Correction(show_key="odd", title="Odd", categories=("music",), corrected_at=noon)
    with Catalogue.open(tmp_path) as catalogue:
        store_correction(catalogue, made)
    sources = read_label_sources(str(tmp_path), LAPTOP.preprocess)
    assert sources.mapping and sources.corrections == {"odd": ("music",)}
    earlier = noon - datetime.timedelta(days=1)
    assert read_label_sources(str(tmp_path), LAPTOP.preprocess, earlier).corrections == {}


def test_changes_of_the_table_of_blocks_keep_cached_trials():
    files, _ = import_closure(ROOT / "tasks" / "ablate" / "trial" / "task.py")
    names = {file.relative_to(ROOT).as_posix() for file in files}
    assert "tasks/train/loop.py" in names and "tasks/scoring/folds.py" in names
    assert not names & {"tasks/ablate/blocks.py", "flows/settings.py", "tasks/ablate/plan.py"}


SMALL = ("--preset", "smoke", "--seeds", "1", "--folds", "2", "--workers", "1", "--blocks", "n-grams")


@pytest.fixture(scope="module")
def served(prefect_url, tmp_path_factory):
    """Variables that make commands use a Prefect server instead of starting one."""
    home = tmp_path_factory.mktemp("prefect_home")
    return {"PREFECT_API_URL": f"{prefect_url}/api", "PREFECT_HOME": str(home)}


@pytest.fixture(scope="module")
def ablated(served, tmp_path_factory):
    home = tmp_path_factory.mktemp("ablation") / "home"
    done = guidespace("ablate", "--feed", SAMPLE, "--home", home, *SMALL, **served)
    assert done.returncode == 0, done.stdout + done.stderr
    return home, done


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_second_run_computes_only_new_blocks(ablated, served):
    home, first = ablated
    assert trials(first.stdout, "done") == {
        f"{name} {fold}/1" for name in ("preset", "n-grams") for fold in (1, 2)
    }
    assert first.stdout.count("worth ") >= 1 and "| n-grams | `train.encoder.ngram=0` |" in first.stdout
    assert not list(home.glob("artifacts/checkpoint/*"))  # answers alone are kept

    second = guidespace(
        "ablate", "--feed", SAMPLE, "--home", home, *SMALL, "train.encoder.hour=0.5", **served
    )
    assert second.returncode == 0, second.stdout + second.stderr
    assert trials(second.stdout, "done") == {f"train.encoder.hour=0.5 {fold}/1" for fold in (1, 2)}
    kept = {f"{name} {fold}/1" for name in ("preset", "n-grams") for fold in (1, 2)}
    assert kept | {"tokenize", "preprocess"} == trials(second.stdout, "unchanged, reused")
    row = next(line for line in first.stdout.splitlines() if line.startswith("| n-grams"))
    assert row in second.stdout

    tracking = Tracking(home)
    runs = tracking.mlflow.client.search_runs([tracking.mlflow.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parents[-1].info.run_id]
    assert {run.info.run_name for run in children} == {"n-grams"} and len(runs) == 2 + 3
    files = {file.path for file in tracking.mlflow.client.list_artifacts(parents[0].info.run_id)}
    assert {"ablation.md", "ablation.html", "effects.json"} <= files
    (child,) = children
    assert {"quality", "worth/all/all", "worth/all/all_margin"} <= child.data.metrics.keys()
    assert PRESETS["smoke"].train.epochs == 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_corrections_apply_to_trials(ablated, served):
    home, _ = ablated
    columns = ["show_key", "title", "labels", "split"]
    before = {file.parent: labels_of(file.parent) for file in home.glob("artifacts/corpus/*/titles.parquet")}
    rows = pq.read_table(next(iter(before)) / "titles.parquet", columns=columns).to_pylist()
    one = next(row for row in rows if row["split"] == "train" and row["labels"] == ["crime"])
    made = {"categories": ("music",), "corrected_at": datetime.datetime.now(datetime.UTC)}
    with Catalogue.open(home) as catalogue:
        store_correction(catalogue, Correction(show_key=one["show_key"], title=one["title"], **made))
    done = guidespace("ablate", "--feed", SAMPLE, "--home", home, *SMALL, **served)
    assert done.returncode == 0, done.stdout + done.stderr
    after = {file.parent: labels_of(file.parent) for file in home.glob("artifacts/corpus/*/titles.parquet")}
    learnt = {own[one["show_key"]] for folder, own in after.items() if folder not in before}
    assert ("music",) in learnt and not any(own[one["show_key"]] == ("music",) for own in before.values())


def labels_of(corpus: Path) -> dict[str, tuple[str, ...]]:
    """Returns the labels of the titles of a corpus by show key."""
    rows = pq.read_table(corpus / "titles.parquet", columns=["show_key", "labels"]).to_pylist()
    return {row["show_key"]: tuple(row["labels"]) for row in rows}


def trials(output: str, ended: str) -> set[str]:
    """Returns the names of the trials (and stages) that ended in a state."""
    lines = (line.split(" s  ", 1)[1] for line in output.splitlines() if line.rstrip().endswith(ended))
    names = {line.rsplit(ended, 1)[0].strip() for line in lines if ended in line}
    return {name for name in names if "/" in name or ended != "done"}
