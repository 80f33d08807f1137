"""Training data contain nothing of held-out titles and of categories.

Each law is checked on guides drawn at random, with shows in many raw forms, words of their own in every title
and airings on both sides of the next period; the slow ones on a real guide.
"""

from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Guide
from storage.formats.corpus import open_corpus
from storage.formats.vocabulary import SPLITS
from storage.home.workspace import Workspace
from tasks.text.splitting import split_words
from tasks.text.titles import parse_title
from tasks.text.words import KINDS
from tasks.tokenize.settings import TokenizeSettings
from tests.worlds import Programme, programmes, publish_corpus

FORMS = ("{}", "{} (12)", "{} - S2 Ep. 4", "New: {}", "{} (Wdh.)", "{} (2019)", "  {} ", "{}...", "{} [R]")
HELD_OUT = ("unseen_title", "unseen_show", "next_period")
SEEDS = (1, 2)


def world(seed: int) -> list[Programme]:
    """The toy world with a word of its own in every title, in franchises of two or three, each show aired up
    to five times, in any form, over ten days."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, programme in enumerate(programmes()[::2]):
        title = f"House{number % 130} {programme.title} own{number}x"
        begin = timedelta(minutes=int(14_400 * rng.random() ** 2))  # most begin early, as in a real guide
        for airing in range(int(rng.integers(1, 6))):
            text = title.upper() if rng.random() < 0.2 else title
            start = programme.start + begin + airing * timedelta(hours=int(rng.integers(1, 12)))
            rows.append(
                replace(
                    programme,
                    title=FORMS[rng.integers(len(FORMS))].format(text),
                    start=start,
                    channel=f"channel{rng.integers(9)}",
                )
            )
    return rows


class Made:
    """Vocabulary and Corpus as read from their files."""

    def __init__(self, home: Path, rows: list[Programme]) -> None:
        self.rows = rows
        _, vocabulary, corpus = publish_corpus(home, rows)
        self.vocabulary, self.corpus = home / vocabulary.path, home / corpus.path
        self.titles = pq.read_table(self.corpus / "titles.parquet").to_pylist()
        self.tokens = [
            (row["kind"], row["token"])
            for row in pq.read_table(self.vocabulary / "tokens.parquet").to_pylist()
        ]
        self.cut = Workspace(home).details(corpus)["next_period_from"]

    def of(self, *splits: str) -> list[dict]:
        return [title for title in self.titles if title["split"] in splits]


@pytest.fixture(scope="module", params=SEEDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    found = Made(tmp_path_factory.mktemp("world"), world(request.param))
    assert all(len(found.of(split)) > 2 for split in HELD_OUT), (
        "a world without held-out titles proves nothing"
    )
    return found


def test_no_show_key_is_on_both_sides(made: Made):
    """However a guide writes a show, all its airings are of one title, and so of one set."""
    titles = {
        row["raw_title"]: made.titles[row["title_id"]]
        for row in pq.read_table(made.vocabulary / "variants.parquet").to_pylist()
    }
    sides: dict[str, set[str]] = {}
    for row in made.rows:
        assert titles[row.title]["show_key"] == parse_title(row.title).show_key
        sides.setdefault(parse_title(row.title).show_key, set()).add(titles[row.title]["split"])
    assert all(len(splits) == 1 for splits in sides.values()) and len(sides) == len(made.titles)
    assert (
        max(sum(parse_title(row.title).show_key == key for row in made.rows) for key in list(sides)[:20]) > 1
    )


def test_the_held_out_sets_are_disjoint(made: Made):
    keys = {split: {title["show_key"] for title in made.of(split)} for split in SPLITS}
    assert all(not keys[one] & keys[other] for one, other in combinations(SPLITS, 2))
    codes = open_corpus(made.corpus).split
    assert [SPLITS[code] for code in codes] == [title["split"] for title in made.titles]
    families = {split: {title["family"] for title in made.of(split)} for split in ("train", "unseen_show")}
    assert not families["train"] & families["unseen_show"]


def test_a_token_that_only_held_out_titles_hold_has_no_row(made: Made):
    """Of every kind, context too: a row is of a token that some training title holds."""
    tokenizer = TokenizeSettings().tokenizer
    tokens = {
        split: {
            (KINDS[kind], token)
            for title in made.of(split)
            for kind, token in tokenizer.tokens(title["raw_title"])
        }
        for split in SPLITS
    }
    context = {
        split: {(token.partition(":")[0], token) for title in made.of(split) for token in title["context"]}
        for split in SPLITS
    }
    assert set(made.tokens) <= tokens["train"] | context["train"]
    for split in HELD_OUT:
        alone = {token for kind, token in tokens[split] - tokens["train"] if kind == "word"}
        assert len(alone) >= len(made.of(split))  # at least the word of its own
        assert not alone & {token for kind, token in made.tokens if kind == "word"}
    assert {kind for kind, _ in tokens["unseen_title"] - tokens["train"]} >= {
        "word",
        "bigram",
        "ngram",
        "edge",
    }


def test_training_titles_have_no_context_of_airings_after_the_cut(made: Made):
    """Their channels and hours are those of airings before it; a title of the next period has those behind
    it."""
    cut = np.datetime64(made.cut, "us")
    keys = {title["show_key"]: title for title in made.titles}
    aired: dict[str, set[str]] = {key: set() for key in keys}
    for row in made.rows:
        key = parse_title(row.title).show_key
        if (np.datetime64(row.start, "us") >= cut) == (keys[key]["split"] == "next_period"):
            aired[key] |= {f"channel:{row.channel}", f"hour:{row.start.hour}"}
    for key, title in keys.items():
        named = {token for token in title["context"] if token.startswith(("channel:channel", "hour:"))}
        assert named == aired[key]


def test_no_token_derives_from_a_category(made: Made, tmp_path: Path):
    """Every category is changed: all a Vocabulary holds, and all of the Corpus but its labels, stays the
    same, byte for byte."""
    other = {
        "cookery": ("zqxdrama", "hour:20"),
        "football": ("zqxnews",),
        "crime": ("zqxkids", "Channel One"),
    }
    changed = Made(
        tmp_path, [replace(row, categories=other[row.categories[0].casefold()]) for row in made.rows]
    )
    assert {label for title in changed.titles for label in title["labels"]} >= {
        "zqxdrama",
        "zqxnews",
        "zqxkids",
    }
    files = sorted(file.name for file in made.vocabulary.iterdir() if file.name != "artifact.json")
    assert {"tokens.parquet", "contexts.parquet", "titles.parquet", "tokens-00000.parquet"} <= set(files)
    assert [
        name
        for name in files
        if (made.vocabulary / name).read_bytes() != (changed.vocabulary / name).read_bytes()
    ] == []
    arrays = sorted(file.name for file in made.corpus.glob("*.npy") if not file.name.startswith("labels."))
    assert {"tokens.values.npy", "tokens.offsets.npy", "kinds.npy", "weights.npy", "split.npy"} <= set(arrays)
    assert [
        name for name in arrays if (made.corpus / name).read_bytes() != (changed.corpus / name).read_bytes()
    ] == []
    assert [title["context"] for title in changed.titles] == [title["context"] for title in made.titles]
    assert any(title["context"] for title in made.titles) and not any(
        "zqx" in token for _, token in changed.tokens
    )


@pytest.mark.slow
def test_nothing_leaks_on_a_real_guide(guidespace_data: Path, tmp_path: Path, without_run):
    """ZA1: a show in one set however it is written, no row of a held-out word, and categories of other
    programmes change no byte."""
    from tasks.ingest.publish import read_and_publish
    from tasks.ingest.settings import IngestSettings
    from tasks.tokenize.task import tokenize

    guide = read_and_publish(
        Workspace(tmp_path),
        [str(guidespace_data / "guides" / "epgshare01_ZA1_2025-03.xml.gz")],
        IngestSettings(),
        None,
        lambda event: None,
    )
    programmes = pq.read_table(tmp_path / guide.path / "programmes.parquet")
    order = pa.array(np.random.default_rng(0).permutation(programmes.num_rows))
    shuffled = programmes.set_column(
        programmes.column_names.index("categories"), "categories", programmes["categories"].take(order)
    )
    with Workspace(tmp_path).publishing(Guide, "shuffled") as draft:
        for file in ("channels.parquet", "feeds.parquet"):
            (draft.folder / file).write_bytes((tmp_path / guide.path / file).read_bytes())
        pq.write_table(shuffled, draft.folder / "programmes.parquet")
    folders = [
        Workspace(tmp_path).folder(without_run(tokenize, str(tmp_path), one, TokenizeSettings()))
        for one in (guide, draft.artifact)
    ]
    assert folders[0] != folders[1] and not shuffled["categories"].equals(programmes["categories"])
    names = sorted(file.name for file in folders[0].iterdir() if file.name != "artifact.json")
    assert [
        name for name in names if (folders[0] / name).read_bytes() != (folders[1] / name).read_bytes()
    ] == []

    titles = pq.read_table(folders[0] / "titles.parquet").to_pylist()
    split_of = {title["show_key"]: title["split"] for title in titles}
    assert len(split_of) == len(titles) > 3000 and set(split_of.values()) >= {"train", *HELD_OUT}
    for row in pq.read_table(folders[0] / "variants.parquet").to_pylist():
        assert split_of[parse_title(row["raw_title"]).show_key] == titles[row["title_id"]]["split"]
    words = {
        side: {
            word
            for title in titles
            if (title["split"] == "train") == side
            for word in split_words(parse_title(title["raw_title"]).display)
        }
        for side in (True, False)
    }
    rows = {
        row["token"]
        for row in pq.read_table(folders[0] / "tokens.parquet").to_pylist()
        if row["kind"] == "word"
    }
    assert rows == words[True] and len(words[False] - words[True]) > 100
