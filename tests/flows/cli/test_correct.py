"""The command ``correct``, and its effect on other commands."""

import json

import pyarrow.parquet as pq
import pytest

from flows.champion import find_champion
from flows.cli.main import main
from storage.home.corrections import CORRECTIONS
from storage.home.workspace import Workspace
from tests.flows.command import QUICK_NIGHT, SAMPLE, guidespace
from tests.tasks.enrich.guides import programme

pytestmark = pytest.mark.slow  # a home of its own

TITLE = "Midsomer Murders"
NEW = "Zebra Crossing Blues"


@pytest.fixture(scope="module")
def home(copy_night, tmp_path_factory):
    """Copy of the home in which titles are corrected."""
    copy = tmp_path_factory.mktemp("corrected") / "home"
    copy_night(copy)
    return copy


@pytest.fixture
def command(home, capsys):
    """Runs a command in this process; returns its exit code, output and errors."""

    def command_(*arguments):
        capsys.readouterr()
        code = main([*map(str, arguments), "--home", str(home)])
        return code, *capsys.readouterr()

    return command_


def test_a_correction_applies_immediately_and_can_be_undone(night, home, command, tmp_path):
    """Corrected in a process of its own; the other home knows nothing of it."""
    (tmp_path / "in.xml").write_text(f"<tv>{programme(TITLE)}{programme(NEW)}</tv>", encoding="utf-8")

    def filled(where=home):
        out = tmp_path / "out.xml"
        assert main(["enrich", str(tmp_path / "in.xml"), str(out), "--home", str(where)]) == 0
        return out.read_text(encoding="utf-8")

    before = filled()
    done = guidespace("correct", TITLE, "Cooking", "--home", home)
    assert done.returncode == 0 and done.stdout.startswith(f"“{TITLE}”: cooking, corrected by"), done.stderr
    for title, category in ((NEW, "news"), (TITLE, "music")):
        code, said, noted = command("correct", title, category)
        assert code == 0 and said.startswith(f"“{title}”: {category}, corrected by a person on ")
        assert (f"has no title {title!r}" in noted) == (title == NEW)
    written = filled()
    assert written.lower().count("<category>music</category>") == 1 and "Cooking" not in written
    assert written.lower().count("<category>news</category>") == 1
    assert filled(night[0]) == before and not json.loads((night[0] / CORRECTIONS).read_text(encoding="utf-8"))

    _, said, _ = command("correct", "--list")
    assert [line.partition("”")[0] for line in said.splitlines()] == [f"“{NEW}", f"“{TITLE}"]
    (_, one) = json.loads(command("correct", "--list", "--json")[1])
    assert (one["title"], one["categories"]) == (TITLE, ["music"])
    _, said, _ = command("explain", TITLE, "Murder, She Wrote")
    assert said.startswith(f"“{TITLE}”: music, corrected by a person on {one['corrected_at'][:10]}\n")
    _, said, _ = command("explain", TITLE, "Murder, She Wrote", "--json")
    assert json.loads(said)["corrected"] == [one]
    _, said, _ = command("explain", TITLE)
    first, guide, vote = said.splitlines()[:3]
    assert first.startswith(f"“{TITLE}”: music, corrected by a person on {one['corrected_at'][:10]}")
    assert "the guide says: crime" in guide and "predicted: crime" in vote
    for title, category, guide in ((TITLE, "music", ["crime"]), (NEW, "news", [])):
        found = json.loads(command("explain", title, "--json")[1])
        assert found["by"] == "correction" and found["guide"] == guide
        assert found["categories"] == found["corrected"][0]["categories"] == [category]
    _, said, _ = command("similar", "Murder, She Wrote", "-k", "200", "--json")
    (near,) = [near for near in json.loads(said) if near["title"] == TITLE]
    assert near.items() >= one.items() and near["categories"] == ["music"]
    _, said, noted = command("similar", TITLE, "-k", "2")
    assert "corrected by" not in said and noted.startswith(f"“{TITLE}”: music, corrected by a person on ")

    for title in (f"{TITLE} (2/3)", NEW):  # any airing names the show
        code, said, _ = command("correct", title, "--undo")
        assert code == 0 and said.startswith("no longer “")
    assert filled() == before and command("correct", "--list")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["correct"], "Name a title"),
        (["correct", TITLE], "Name a title"),
        (["correct", TITLE, "news", "--undo"], "Name a title"),
        (["correct", "--list", TITLE], "Name a title"),
        (["correct", TITLE, "musik"], "has no category 'musik'; similar categories: music"),
        (["correct", TITLE, "zzzzzz"], "has no category 'zzzzzz'; some categories: "),
        (["correct", "To be announced", "news"], "is a placeholder"),
        (["correct", TITLE, "--undo"], "was not corrected; `guidespace correct --list`"),
    ],
)
def test_errors_are_one_line(command, arguments, problem):
    code, said, error = command(*arguments)
    assert code == 2 and not said and len(error.splitlines()) == 1 and problem in error, error


def test_homes_without_a_model_or_with_a_writer_are_refused(home, command, tmp_path, capsys):
    Workspace(tmp_path / "empty")
    assert main(["correct", TITLE, "news", "--home", str(tmp_path / "empty")]) == 2
    assert "has no champion model yet" in capsys.readouterr().err
    with Workspace(home).writing("a test"):
        code, _, error = command("correct", TITLE, "music")
    assert code == 2 and "is being written by process" in error


def test_the_next_night_trains_with_the_correction(home, command):
    """A training title has the category in tomorrow's model; a held-out one keeps what the guide says."""
    columns = ["show_key", "title", "labels", "split", "airings"]
    rows = pq.read_table(find_champion(str(home)).folder / "titles.parquet", columns=columns).to_pylist()
    crime = [row for row in rows if row["labels"] == ["crime"]]
    chosen = {
        split: next(row for row in crime if row["split"] == split) for split in ("train", "unseen_show")
    }
    for row in chosen.values():
        assert command("correct", row["title"], "music")[0] == 0
    night = (
        "nightly",
        "--feed",
        SAMPLE,
        "--home",
        home,
        "--preset",
        "smoke",
        "--set",
        *QUICK_NIGHT,
        "publish.promote=always",
    )
    done = guidespace(*night)
    assert done.returncode == 0, done.stdout + done.stderr
    after = pq.read_table(find_champion(str(home)).folder / "titles.parquet", columns=columns).to_pylist()
    labels = {row["show_key"]: row["labels"] for row in after}
    assert labels.pop(chosen["train"]["show_key"]) == ["music"]
    assert labels == {row["show_key"]: row["labels"] for row in rows if row["show_key"] in labels}
