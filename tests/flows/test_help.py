"""--help of every command names what the command takes."""

import pytest

from flows.cli.main import main
from flows.cli.words import WordsError, ngram_lines

COMMANDS = (
    "nightly", "ingest", "backfill", "tune", "ablate", "similar", "explain", "duplicates", "scores",
    "categories", "status", "sql", "export", "ngrams", "vector", "neighbours",
    "settings", "doctor", "serve", "rollback", "enrich", "correct", "like", "forget", "tonight", "up", "gc",
)  # fmt: skip


@pytest.fixture
def help_of(capsys):
    def help_of_(*command):
        assert main([*command, "--help"]) == 0
        return " ".join(capsys.readouterr().out.split())

    return help_of_


def test_ngrams_are_a_fasttext_models_alone(help_of, tmp_path):
    (tmp_path / "words.vec").write_text("1 2\ngoal 1 0\n", encoding="utf-8")
    with pytest.raises(WordsError, match="no n-grams"):
        list(ngram_lines(tmp_path / "words.vec", ["goal"], as_json=False))
    assert "fastText .bin or .ftz [required] WORD" in help_of("ngrams")
    assert "word2vec or GloVe" in help_of("vector") and "word2vec or GloVe" in help_of("neighbours")


def test_only_who_reads_words_from_standard_input_says_so(help_of):
    assert [
        command for command in ("ngrams", "vector", "neighbours") if "standard input" in help_of(command)
    ] == ["ngrams", "vector"]


def test_every_command_of_the_list_has_its_help(help_of):
    whole = help_of()
    for name in COMMANDS:
        assert name in whole and help_of(name).startswith(f"Usage: guidespace {name} "), name
