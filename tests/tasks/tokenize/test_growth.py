"""Vocabularies over nights: whose ids tonight keeps, and where tokens have gone."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Guide, Vocabulary
from storage.workspace import Workspace
from tasks.tokenize.growth import lineage
from tasks.tokenize.settings import TokenizeSettings
from tasks.tokenize.splits import SplitSettings, hashes
from tasks.tokenize.words import Words
from tests.worlds import PLACES, Programme, programmes, publish_guide

SETTINGS = TokenizeSettings()


@pytest.fixture
def night(tmp_path: Path):
    """One night's tokenizing as the flow does it: ancestor, then task."""
    from prefect.logging import disable_run_logger

    from tasks.tokenize.task import ancestor_of, tokenize

    def run(guide: Guide, settings: TokenizeSettings = SETTINGS) -> Vocabulary:
        return tokenize.fn(str(tmp_path), guide, settings, ancestor_of(str(tmp_path), guide, settings))

    with disable_run_logger():
        yield run


def guides(home: Path) -> list[Guide]:
    """Three nights: the toy world; with forty titles more; without most of the first."""
    more = [Programme(f"{word} Quagga {number}") for number, word in enumerate(["Zebra", "Okapi", "Bongo", "Kudu"] * 10)]
    return [publish_guide(home, rows) for rows in (programmes(20), programmes(20) + more, programmes(20)[60:] + more)]


def tokens(home: Path, vocabulary: Vocabulary) -> list[tuple[str, str]]:
    table = pq.read_table(home / vocabulary.path / "tokens.parquet")
    assert table["token_id"].to_pylist() == list(range(len(table)))
    return list(zip(table["kind"].to_pylist(), table["token"].to_pylist(), strict=True))


def details(home: Path, vocabulary: Vocabulary) -> dict:
    return Workspace(home).details(vocabulary)


def test_ids_stay_from_night_to_night(tmp_path: Path, night):
    settings = replace(SETTINGS, compact_at=1.0)
    first, second, third = (night(guide, settings) for guide in guides(tmp_path))
    for before, after in ((first, second), (second, third)):
        assert tokens(tmp_path, after)[: before.counts["tokens"]] == tokens(tmp_path, before)
        assert after.counts["tokens_kept"] == before.counts["tokens"] < after.counts["tokens"]
    assert third.counts["tokens_alive"] < third.counts["tokens"]
    assert details(tmp_path, first)["ancestor"] is None and not (tmp_path / first.path / "remap.npy").exists()
    assert details(tmp_path, third)["ancestor"] == {"path": second.path, "digest": second.digest}
    np.testing.assert_array_equal(np.load(tmp_path / third.path / "remap.npy"), np.arange(second.counts["tokens"]))


def test_a_compaction_is_what_a_first_night_would_be_and_says_where_tokens_went(tmp_path: Path, night):
    first, second, third = guides(tmp_path)
    night(first, replace(SETTINGS, compact_at=1.0))
    grown = night(second, replace(SETTINGS, compact_at=1.0))
    compacted = night(third, replace(SETTINGS, compact_at=1e-9))
    assert details(tmp_path, compacted)["compacted"] and compacted.counts["tokens_kept"] == 0
    before, after = tokens(tmp_path, grown), tokens(tmp_path, compacted)
    frequency = pq.read_table(tmp_path / compacted.path / "tokens.parquet")["document_frequency"].to_pylist()
    assert frequency == sorted(frequency, reverse=True) and frequency[-1] > 0
    remap = np.load(tmp_path / compacted.path / "remap.npy")
    assert len(remap) == len(before) and (remap == -1).any() and (remap >= 0).any()
    for token, new in zip(before, remap, strict=True):
        assert (new == -1 and token not in after) or after[new] == token


def test_a_repeated_night_finds_itself(tmp_path: Path, night):
    """A, B, A, B: the third and fourth nights are the first and second, ids and cache key too."""
    from tasks.tokenize.task import STAGE, ancestor_of

    first, second, _ = guides(tmp_path)
    made = [night(guide) for guide in (first, second)]
    for guide, vocabulary in zip((first, second), made, strict=True):
        ancestor = ancestor_of(str(tmp_path), guide, SETTINGS)
        assert STAGE.key(guide, SETTINGS, ancestor) == Path(vocabulary.path).name
        assert Workspace(tmp_path).read(Vocabulary, STAGE.key(guide, SETTINGS, ancestor)) == vocabulary
    assert night(first) == made[0] and night(second) == made[1]


def test_a_repeated_night_needs_no_ancestor_on_disk(tmp_path: Path, night):
    """Pruned since; but once the night's own folder is damaged too, it grows from what there is."""
    from tasks.tokenize.task import ancestor_of

    first, second, third = guides(tmp_path)
    old, middle = night(first), night(second)
    shutil.rmtree(tmp_path / old.path)
    assert ancestor_of(str(tmp_path), second, SETTINGS) == Vocabulary(path=old.path, digest=old.digest)
    assert ancestor_of(str(tmp_path), third, SETTINGS) == middle
    (tmp_path / middle.path / "tokens.parquet").write_bytes(b"")
    assert ancestor_of(str(tmp_path), second, SETTINGS) is None and ancestor_of(str(tmp_path), third, SETTINGS) is None


@pytest.mark.parametrize("other", [replace(SETTINGS, tokenizer=Words()), replace(SETTINGS, splits=SplitSettings(salt="another")), replace(SETTINGS, context=())])
def test_another_tokenizer_or_split_is_another_lineage(tmp_path: Path, night, other: TokenizeSettings):
    first, second, _ = guides(tmp_path)
    night(first)
    made = night(second, other)
    assert details(tmp_path, made)["ancestor"] is None
    assert lineage(other) != lineage(SETTINGS) == lineage(replace(SETTINGS, weight_exponent=0.5, compact_at=0.2))


def test_a_word_that_only_held_out_titles_hold_tonight_is_not_known(tmp_path: Path, night):
    """Yesterday's row stays, tonight's corpus has no entry of it and calls titles with it out of vocabulary."""
    from tasks.preprocess.settings import PreprocessSettings
    from tasks.preprocess.task import preprocess

    settings = replace(SETTINGS, compact_at=1.0)
    names = [f"{place[:4]}{other[::-1]}" for place in PLACES[:12] for other in PLACES[:12]]
    animals = [Programme(f"{name} quoll", (("Wild", "Tame", "Rare")[number % 3],)) for number, name in enumerate(names)]
    first = night(publish_guide(tmp_path, animals), settings)
    held = pq.read_table(tmp_path / first.path / "titles.parquet").filter(pc.field("split") == "unseen_show")["title"].to_pylist()
    lone = min((row for row in animals if row.title in held), key=lambda row: hashes([row.title.split()[0].casefold()], "guidespace-1/family")[0])
    guide = publish_guide(tmp_path, [lone, *(replace(row, title=row.title.replace("quoll", "numbat")) for row in animals if row != lone)][:-1])
    second = night(guide, settings)
    row = tokens(tmp_path, second).index(("word", "quoll"))
    assert tokens(tmp_path, first)[row] == ("word", "quoll")
    frequencies = [pq.read_table(tmp_path / made.path / "tokens.parquet")["document_frequency"][row].as_py() for made in (first, second)]
    assert frequencies[0] > 100 and frequencies[1] == 0
    corpus = preprocess.fn(str(tmp_path), guide, second, settings, PreprocessSettings(minimum_titles=5, minimum_training_titles=20))
    assert row not in np.load(tmp_path / corpus.path / "tokens.values.npy")
    quolls = [title for title in pq.read_table(tmp_path / corpus.path / "titles.parquet").to_pylist() if "quoll" in title["title"]]
    assert quolls and all(title["oov"] and title["split"] != "train" for title in quolls)


def test_a_vocabulary_of_an_older_home_is_no_ancestor(tmp_path: Path, night):
    from tasks.tokenize.task import ancestor_of

    first, second, _ = guides(tmp_path)
    file = tmp_path / night(first).path / "artifact.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"details": {"salt": "guidespace-1"}}))
    assert ancestor_of(str(tmp_path), second, SETTINGS) is None
