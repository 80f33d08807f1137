"""The command ``explain`` with one title; tests/tasks/search tests two titles."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.champion import find_champion
from flows.cli.main import main
from storage.home.latest import read_latest
from tasks.enrich.explain import decide
from tasks.enrich.model import CategoryModel

UNKNOWN = "Zebra Kitchen Blues"
TITLE = "Midsomer Murders"
pytestmark = pytest.mark.slow  # a night of its own


@pytest.fixture
def explain(night, capsys):
    """Runs the command in this process; returns its exit code, output and errors."""

    def explain_(*arguments):
        capsys.readouterr()
        return main(["explain", *arguments, "--home", str(night[0])]), *capsys.readouterr()

    return explain_


@pytest.fixture(scope="module")
def model(night):
    """Model that serves."""
    return CategoryModel(find_champion(str(night[0])).folder)


def test_the_vote_is_that_of_the_evaluation(night, model):
    """Of held-out titles as they air: whether the first label is right, and how many voters agree."""
    latest = read_latest(night[0], "corpus")
    titles = pq.read_table(Path(latest["corpus"]) / "titles.parquet", columns=["title"])["title"]
    file, asked = Path(latest["scores"]).parent / "queries.parquet", [("form", "==", "title_context")]
    queries = pq.read_table(file, filters=asked).to_pylist()[::8]
    assert len(queries) > 20 and len({query["protocol"] for query in queries}) == 3
    for query in queries:
        found = decide(model, titles[query["title_id"]].as_py())
        assert found.by == "guide" and (found.predicted in found.guide) == query["predictor_correct"]
        agree = [bool({*voter.categories} & {*found.guide}) for voter in found.voters]
        assert sum(agree) / len(agree) == pytest.approx(query["precision_at_k"])


def test_voters_are_labelled_training_titles_and_never_the_title_itself(model):
    rows = pq.read_table(model.folder / "titles.parquet").to_pylist()
    training = {row["title"]: row["labels"] for row in rows if row["split"] == "train" and row["labels"]}
    for row in model.voters[::300]:
        found = decide(model, rows[row]["title"])
        assert len(found.voters) == 10 and found.title not in {voter.title for voter in found.voters}
        assert all(training[voter.title] == voter.categories for voter in found.voters)
        cosines = [voter.cosine for voter in found.voters]
        assert cosines == sorted(cosines, reverse=True) and 0 < cosines[0] <= 1
        for category, count in found.votes.items():
            assert count == sum(category in voter.categories for voter in found.voters)
        scores = [candidate.score for candidate in found.candidates]
        assert found.candidates[0].category == found.predicted and scores == sorted(scores, reverse=True)


def test_a_title_without_categories_is_decided_by_the_vote(model):
    bare = next(row for row, labels in enumerate(model.labels) if not labels)
    titles = pq.read_table(model.folder / "titles.parquet", columns=["title"])["title"]
    found = decide(model, titles[bare].as_py())
    assert found.by == "prediction" and found.categories == [found.predicted] and not found.guide


def test_printed_lines_and_json_agree(explain):
    code, said, _ = explain(TITLE, "--json")
    document = json.loads(said)
    assert code == 0 and (document["title"], document["by"]) == (TITLE, "guide")
    assert document["categories"] == document["guide"] == ["crime"] and document["corrected"] == []
    assert document["predicted"] == "crime" and 0.5 < document["confidence"] <= 1 and not document["unsure"]
    _, said, _ = explain(f"{TITLE} (2/3)")  # any airing names the show
    guide, vote, empty, _, *candidates = said.splitlines()
    assert guide == f"“{TITLE}”: the guide says: crime" and not empty
    assert vote == f"“{TITLE}”: predicted: crime, confidence {document['confidence']:.3f}"
    parts, (votes, *voters) = candidates[: candidates.index("")], candidates[candidates.index("") + 1 :]
    for line, candidate in zip(parts, document["candidates"], strict=True):
        figures = (f"{candidate[name]:.3f}" for name in ("score", "vote", "linear"))
        assert line.split() == [*candidate["category"].split(), *figures]
    assert votes.startswith(f"of 10 voters: crime {document['votes']['crime']}")
    for line, voter in zip(voters, document["voters"], strict=True):
        assert line.split()[0] == f"{voter['cosine']:.3f}" and voter["title"] in line
        assert line.endswith(", ".join(voter["categories"]))


def test_a_title_that_the_guide_lacks(explain):
    code, said, _ = explain(UNKNOWN, "--json")
    document = json.loads(said)
    assert code == 0 and document["by"] == "prediction" and document["categories"] == [document["predicted"]]
    assert len(document["voters"]) == 10 and document["guide"] == [] and 0 < document["confidence"] <= 1
    assert "the guide says" not in explain(UNKNOWN)[1]
    code, said, error = explain("☃☃☃")
    assert code == 2 and not said and "nothing is known of the title '☃☃☃'" in error
