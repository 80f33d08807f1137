"""``guidespace patterns`` on a small guide."""

import duckdb
import pytest
from prefect.logging import disable_run_logger

from flows.cli.main import main
from storage.catalogue.connection import CATALOGUE_FILE, Catalogue
from storage.catalogue.sub_titles import read_sub_titles
from storage.home.workspace import Workspace
from storage.tracking import Tracking
from tasks.ingest.publish import read_and_publish
from tasks.ingest.settings import IngestSettings
from tasks.overrides import SettingError, override
from tasks.recurrent.encoder import Recurrent
from tasks.recurrent.training import RecurrentTrainingSettings
from tasks.subtitles.settings import LabellingSettings, PatternSettings
from tasks.subtitles.task import find_patterns
from tests.flows.command import guidespace

pytestmark = pytest.mark.slow  # a home of its own

SUB_TITLES = [
    *(f"Episode {number}" for number in range(1, 40)),
    *(f"The Lost {word}" for word in ("River", "Garden", "Letter", "Harbour", "Winter")),
    *(f"Die Spur, Teil {number}" for number in range(1, 9)),
    *("Winter; Harbour", "Kapitel 7", "Parte 3"),
]
PROGRAMME = (
    '<programme channel="one" start="202503{:02}{:02}0000 +0000"><title>Show</title><sub-title>{}</sub-title>'
    '<episode-num system="onscreen">S1 E{}</episode-num></programme>'
)
GUIDE = "\n".join(
    PROGRAMME.format(1 + place // 24, place % 24, text, place + 1) for place, text in enumerate(SUB_TITLES)
)
GUIDE = f"<tv>{GUIDE}</tv>"
QUICK = PatternSettings(
    encoder=Recurrent(character_dim=8, hidden=16),
    training=RecurrentTrainingSettings(epochs=1),
    examples=100,
    unlabelled=10,
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("patterns"))
    guide = workspace.home / "guide.xml"
    guide.write_text(GUIDE, encoding="utf-8")
    read_and_publish(workspace, [str(guide)], IngestSettings(), None, lambda _: None)
    return workspace.home


def test_sub_titles_get_patterns_and_mlflow_the_confusion(home):
    tracking = Tracking(home)
    run = tracking.start_run("patterns-test", "patterns")
    with disable_run_logger():
        done = find_patterns.fn(str(home), QUICK, False, run)
    with Catalogue.open(home) as catalogue:
        assert done.sub_titles == len(read_sub_titles(catalogue)) == len(SUB_TITLES)
        rows = catalogue.connection.sql(
            "SELECT pattern, count(*) FROM sub_title_patterns GROUP BY ALL"
        ).fetchall()
        (known,) = catalogue.connection.sql(
            "SELECT pattern FROM sub_title_patterns WHERE sub_title = 'Episode 9' AND probability IS NULL"
        ).fetchall()
    assert dict(rows) == done.counts and known == ("episode_number",)
    logged = {file.path for file in tracking.mlflow.client.list_artifacts(run, "patterns")}
    assert logged == {"patterns/confusion.html", "patterns/confusion.csv"}
    metrics = tracking.mlflow.client.get_run(run).data.metrics
    assert (
        metrics["patterns/sub_titles/episode_number"] == done.counts["episode_number"] and "loss" in metrics
    )
    with disable_run_logger():
        again = find_patterns.fn(str(home), QUICK, True)
    assert again.counts == done.counts


def test_bad_settings_are_refused_in_a_line():
    for text, told in (
        ("patterns.examples=3", "greater than or equal to 10"),
        ("patterns.sample=3", "sample"),
    ):
        with pytest.raises(SettingError, match=told) as error:
            override(LabellingSettings(), [text])
        assert "\n" not in str(error.value)


def test_a_home_without_a_classifier_is_refused_in_a_line(tmp_path, capsys):
    workspace = Workspace(tmp_path / "empty")
    with disable_run_logger(), pytest.raises(ValueError, match="has no classifier of sub-titles; run"):
        find_patterns.fn(str(workspace.home), QUICK, True)
    assert main(["patterns", "--home", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_runs_the_flow_and_prints_counts(home):
    few = ("patterns.examples=50", "patterns.training.epochs=1", "patterns.encoder.hidden=16")
    done = guidespace("patterns", "--home", home, "--set", *few)
    assert done.returncode == 0, done.stderr
    assert "episode_number" in done.stdout and "sub-titles have a pattern" in done.stdout
    with duckdb.connect(str(home / CATALOGUE_FILE), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM episodes WHERE pattern IS NOT NULL").fetchall()[0][0] > 0
    assert done.stdout.count("epoch 1 of 1") == 1
