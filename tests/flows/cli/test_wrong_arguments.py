"""Invalid arguments: one line that names them, exit code 2, and no side effect."""

import io
import json
import sys

import pytest

from flows.cli.main import main
from storage.home.latest import write_latest
from storage.home.workspace import Workspace

WORDS = "2 2\ngoal 1 0\nmatch 0.6 0.8\n"


@pytest.fixture
def refused(capsys):
    """Runs a command that must fail; returns the one line that it writes on standard error."""

    def refused_(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr().err
        assert code == 2 and "Traceback" not in said, said
        return said.splitlines()[-1]

    return refused_


@pytest.fixture
def home(tmp_path):
    """Home whose record of the last run names artifacts that do not exist."""
    place = Workspace(tmp_path / "home").home
    write_latest(
        place,
        {
            "map": place / "m",
            "scores": place / "s",
            "model": place / "v",
            "corpus": place / "c",
            "champion": True,
        },
    )
    return place


def test_export_names_paths_that_cannot_be_written(refused, home, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert f"{tmp_path} is a folder" in refused("export", "--home", home, "--format", "parquet", tmp_path)
    assert f"{tmp_path / 'file'} is a file" in refused(
        "export", "--home", home, "--format", "labels", tmp_path / "file"
    )
    assert f"{tmp_path / 'none'} is missing" in refused(
        "export", "--home", home, "--format", "word2vec", tmp_path / "none" / "vectors.txt"
    )


@pytest.mark.parametrize("path", ["a" * 300, "~nobody-has-this-name/x"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("similar", "News", "--home"),
        ("similar", "News", "--home", "HOME", "--model"),
        ("nightly", "--feed", "sample/guide.xml.gz", "--home"),
        ("nightly", "--home", "HOME", "--feed"),
        ("guide", "--home", "HOME", "--model", "none", "--playlist"),
        ("enrich", "sample/guide.xml.gz", "--home", "HOME"),
        ("export", "--format", "parquet", "--home", "HOME"),
        ("like", "--home", "HOME", "--from"),
        ("serve", "--home"),
    ],
)
def test_invalid_paths_are_refused(refused, home, arguments, path):
    words = [str(home) if word == "HOME" else word for word in arguments]
    refused(*words, path)


@pytest.mark.parametrize("instant", ["0001-01-01", "9999-12-31T23:59-12:00"])
@pytest.mark.parametrize(
    "arguments", [("tonight", "--at"), ("tonight", "--from"), ("tonight", "--until"), ("nightly", "--as-of")]
)
def test_years_of_instants_are_limited(refused, home, arguments, instant):
    command, option = arguments
    said = refused(command, "--home", home, option, instant)
    assert f"'{instant}' is not in the years 1900 to 2199" in said


@pytest.mark.parametrize(
    "arguments", [("fasttext", "0"), ("fasttext", "-5"), ("fasttext", str(2**31)), ("vec", "1000")]
)
def test_invalid_buckets_are_refused(refused, home, tmp_path, arguments):
    form, buckets = arguments
    assert f"--buckets {buckets}" in refused(
        "export", "--home", home, "--format", form, "--buckets", buckets, tmp_path / "words.bin"
    )


@pytest.mark.parametrize(
    "command",
    [
        ("scores",),
        ("categories",),
        ("duplicates",),
        ("sql", "SELECT 1"),
        ("export", "--format", "parquet", "x.parquet"),
    ],
)
def test_removed_artifacts_of_the_last_run_are_reported(refused, home, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused(*command, "--home", home)
    assert "has been removed" in said and "guidespace nightly" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sizes", "0"), "sizes"),
        (("--rates", "0"), "rates"),
        (("--rates", "-1"), "rates"),
        (("--rates", "nan"), "rates"),
    ],
)
def test_tune_refuses_invalid_sizes_and_rates(refused, tmp_path, arguments, words):
    assert words in refused("tune", "--feed", "sample/guide.xml.gz", "--home", tmp_path / "home", *arguments)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        (
            ("cluster.strategy=dbscan", "cluster.strategy.min_samples=40"),
            "min_samples 40 needs 39 neighbours",
        ),
        (
            ('evaluate.baselines=[{"name": "tfidf_knn", "features": {"shortest_char_ngram": 6}}]',),
            "raise longest_char_ngram",
        ),
    ],
)
def test_settings_that_do_not_fit_each_other_are_refused_before_anything_is_read(
    refused, tmp_path, assignments, words
):
    assert words in refused(
        "nightly", "--feed", "sample/guide.xml.gz", "--home", tmp_path / "home", "--set", *assignments
    )
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("command", ["nightly", "tune", "ablate"])
def test_an_unreadable_required_feed_is_refused_before_prefect_starts(
    refused, tmp_path, monkeypatch, command
):
    def fail(home):
        raise AssertionError("Prefect was started")

    monkeypatch.setattr("flows.server.start_prefect", fail)
    (picture := tmp_path / "picture.xml").write_bytes(b"\x89PNG")
    feeds = "--feed", "sample/guide.xml.gz", picture
    assert "the feed is listed in ingest.required" in refused(
        command, *feeds, "--home", tmp_path / "home", "--set", 'ingest.required=["*/picture.xml"]'
    )
    assert not (tmp_path / "home").exists()


def test_neighbours_takes_a_word_and_vector_also_standard_input(tmp_path, capsys, monkeypatch):
    (tmp_path / "words.vec").write_text(WORDS, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO("goal\nmatch\n"))
    assert main(["vector", str(tmp_path / "words.vec"), "-", "--json"]) == 0
    assert [json.loads(line)["word"] for line in capsys.readouterr().out.splitlines()] == ["goal", "match"]
    assert (
        main(["neighbours", str(tmp_path / "words.vec"), "-"]) == 2
    )  # no list of words: "-" is a word like others
    assert "neither the word '-'" in capsys.readouterr().err
    assert main(["vector", str(tmp_path / "words.vec"), "goal", "-k", "3"]) == 2


def test_an_invalid_minimum_cosine_is_refused(refused):
    assert (
        "'--minimum': Input should be a valid number, unable to parse string as a number (got 'abc')"
        in refused("duplicates", "--minimum", "abc")
    )
    assert "--minimum must be from 0.8 to 1, got 0.5" in refused("duplicates", "--minimum", "0.5")


def test_query_parameters_need_names(refused, home):
    assert "--with 'title'" in refused("sql", "--home", home, "--with", "title", "SELECT $title")


def test_doctor_reports_a_file_in_place_of_a_home(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["doctor", "--home", str(tmp_path / "file"), "--json"]) == 1
    (found,) = [finding for finding in json.loads(capsys.readouterr().out) if finding["about"] == "home"]
    assert found["state"] == "bad" and "expected a folder" in found["text"]


def test_only_some_options_take_several_values(refused, home):
    assert "has no champion" in refused("similar", "--home", home, "--search", "exact", "Murder")
    assert "unknown search best, worst" in refused(
        "tune", "--home", home, "--feed", "sample/guide.xml.gz", "--search", "worst", "best"
    )
    assert "has been removed" in refused("sql", "--home", home, "--with", "title=News", "SELECT $title")
