"""The frequency table against a plain count."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue import frequencies
from storage.catalogue.frequencies import TokenRules, TokenTable, write_token_table

TITLES = {0: ["a", "a", "b"], 1: ["a", "c"], 2: ["a", "b", "d"], 3: ["a"]}


def counts(folder: Path, titles: dict[int, list[str]], kind: str = "word") -> list[Path]:
    """Counts in two files, of the titles with even and with odd numbers."""
    files = [folder / "even.counts", folder / "odd.counts"]
    for odd, file in enumerate(files):
        own = [tokens for title, tokens in titles.items() if title % 2 == odd]
        names = sorted({token for tokens in titles.values() for token in tokens})  # of either half: some stand there with counts of 0
        columns = {
            "kind": pa.array([kind] * len(names), pa.string()),
            "token": pa.array(names, pa.string()),
            "term_frequency": pa.array([sum(tokens.count(name) for tokens in own) for name in names], pa.int64()),
            "document_frequency": pa.array([sum(name in tokens for tokens in own) for name in names], pa.int64()),
        }
        pq.write_table(pa.table(columns), file)
    return files


def rules(**changes) -> TokenRules:
    return TokenRules(**({"thinned": ("ngram",), "minimum_titles": 2, "exponent": 0.5, "smallest": 0.1, "largest": 10.0} | changes))


def count(path: Path, titles: dict[int, list[str]] = TITLES, kind: str = "word", **changes) -> list[dict]:
    written = write_token_table(counts(path.parent, titles, kind), rules(**changes), path)
    found = pq.read_table(path).to_pylist()
    assert written.tokens == written.alive == len(found) and written.kept == 0 and not written.compacted
    assert written.hot_hit_rate == written.sorted_hit_rate
    return found


def grow(folder: Path, nights: list[dict[int, list[str]]], **changes) -> tuple[TokenTable, list[dict]]:
    """The last of several nights, each grown from the one before."""
    before, written = None, None
    for number, titles in enumerate(nights):
        path = folder / f"{number}.parquet"
        written = write_token_table(counts(folder, titles), rules(**changes), path, before)
        before = path
    assert written and before
    return written, pq.read_table(before).to_pylist()


def test_counts_and_order(tmp_path: Path):
    found = count(tmp_path / "tokens.parquet")
    assert [(row["token_id"], row["token"], row["term_frequency"], row["document_frequency"]) for row in found] == [(0, "a", 5, 4), (1, "b", 2, 2), (2, "c", 1, 1), (3, "d", 1, 1)]


def test_columns_are_those_that_are_read(tmp_path: Path):
    assert list(count(tmp_path / "tokens.parquet")[0]) == ["token_id", "kind", "token", "term_frequency", "document_frequency", "weight"]


def test_weight_is_the_formula(tmp_path: Path):
    found = count(tmp_path / "tokens.parquet")
    frequencies = np.array([4, 2, 1, 1])
    np.testing.assert_allclose([row["weight"] for row in found], (np.median(frequencies) / frequencies) ** 0.5, rtol=1e-6)


@pytest.mark.parametrize(("changes", "weights"), [({"exponent": 0.0}, [1, 1, 1, 1]), ({"smallest": 0.9, "largest": 1.1}, [0.9, 0.9, 1.1, 1.1])])
def test_weight_is_clamped_and_can_be_off(tmp_path: Path, changes: dict, weights: list[float]):
    assert [row["weight"] for row in count(tmp_path / "tokens.parquet", **changes)] == pytest.approx(weights)


def test_thinned_kinds_need_more_titles(tmp_path: Path):
    assert [row["token"] for row in count(tmp_path / "tokens.parquet", kind="ngram")] == ["a", "b"]
    assert len(count(tmp_path / "tokens.parquet", kind="word")) == 4


def test_no_occurrence_is_no_token(tmp_path: Path):
    assert count(tmp_path / "tokens.parquet", titles={}) == []


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_counts_added_up_part_by_part_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int):
    """Eight counts of four tokens, in as many parts as there may be counts, in three, and in two."""
    expected = count(tmp_path / "at_once.parquet")
    monkeypatch.setattr(frequencies, "ROWS", rows)
    assert count(tmp_path / "parts.parquet") == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["at_once.parquet", "even.counts", "odd.counts", "parts.parquet"]


def test_a_path_with_a_quote(tmp_path: Path):
    folder = tmp_path / "it's here"
    folder.mkdir()
    assert len(count(folder / "tokens.parquet")) == 4


def test_known_tokens_keep_their_ids_and_new_ones_are_appended(tmp_path: Path):
    """z and y are new and more frequent than all others; c has gone."""
    tonight = {number: ["z", "z", "y", "a"] for number in range(3)} | {3: ["z", "b"], 4: ["d"]}
    written, found = grow(tmp_path, [TITLES, tonight], hot_share=0.5, compact_at=1.0)
    assert [(row["token_id"], row["token"], row["document_frequency"], row["term_frequency"]) for row in found] == [
        (0, "a", 3, 3), (1, "b", 1, 1), (2, "c", 0, 0), (3, "d", 1, 1), (4, "z", 4, 7), (5, "y", 3, 3),
    ]  # fmt: skip
    assert (written.tokens, written.kept, written.alive, written.compacted) == (6, 4, 5, False)
    assert written.hot_hit_rate == pytest.approx(4 / 15)  # a, b and c
    assert written.sorted_hit_rate == pytest.approx(13 / 15)  # z, a and y
    median = np.median([3, 1, 1, 4, 3])
    np.testing.assert_allclose([row["weight"] for row in found], (median / np.array([3, 1, 1, 1, 4, 3])) ** 0.5, rtol=1e-6)


def test_ids_are_sorted_anew_when_the_hot_prefix_has_lost_five_points(tmp_path: Path):
    """Ten tokens, the first is hot: it served 20 %, and would serve 20 % if ids were sorted tonight; a newcomer takes a bit less, then more."""
    first = {number: [f"t{number}", "hot"] if number < 3 else [f"t{number}"] for number in range(9)}
    for newcomer, compacted in ((3, False), (4, True)):  # 3 of 15 against 3 of 15; 3 of 16 against 4 of 16
        folder = tmp_path / str(newcomer)
        folder.mkdir()
        tonight = {**first, **{100 + number: ["new"] for number in range(newcomer)}}
        written, found = grow(folder, [first, tonight], hot_share=0.05, compact_at=0.05)
        assert written.compacted is compacted
        rows = [row["token"] for row in found]
        if compacted:
            assert rows[:2] == ["new", "hot"] and written.kept == 0 and written.hot_hit_rate == written.sorted_hit_rate
            assert [row["document_frequency"] for row in found] == sorted((row["document_frequency"] for row in found), reverse=True)
        else:
            assert rows[:10] == sorted(rows[:10], key=lambda token: (token != "hot", token)) and rows[10:] == ["new"]


def test_compaction_lets_go_of_tokens_that_nothing_holds(tmp_path: Path):
    written, found = grow(tmp_path, [TITLES, {0: ["x", "y"], 1: ["x"]}], compact_at=0.01)
    assert written.compacted and [row["token"] for row in found] == ["x", "y"]


def test_a_token_below_the_minimum_keeps_the_row_that_it_has(tmp_path: Path):
    both, one = {0: ["ab", "cd"], 1: ["ab", "cd"]}, {0: ["ab", "ef"], 1: ["gh"]}
    before, path = tmp_path / "before.parquet", tmp_path / "after.parquet"
    write_token_table(counts(tmp_path, both, "ngram"), rules(), before)
    written = write_token_table(counts(tmp_path, one, "ngram"), rules(compact_at=1.0), path, before)
    assert [(row["token"], row["document_frequency"]) for row in pq.read_table(path).to_pylist()] == [("ab", 1), ("cd", 0)]
    assert written.alive == 1


def test_the_same_night_again_is_the_same_table(tmp_path: Path):
    once, rows = grow(tmp_path, [TITLES])
    again, same = grow(tmp_path, [TITLES, TITLES])
    assert same == rows and again.kept == once.tokens and not again.compacted
