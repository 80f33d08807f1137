"""Blind ratings: one draw for a seed, columns that the key names, scores that are checked by hand."""

import json
import subprocess
import sys
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.quality.blind_ratings import (
    draw,
    make_lists,
    nearest,
    read_editor,
    write_key,
    write_lists,
    write_titles,
)
from benchmarks.quality.rating_scores import agreement, read_set, score, table
from storage.arrays import unit_rows
from storage.stages import ROOT


@pytest.fixture
def titles() -> pa.Table:
    """40 titles of 20 families; number 0 is a placeholder, number 1 airs most."""
    return pa.table(
        {
            "title": [f"Title {number}" for number in range(40)],
            "family": [f"family {number // 2}" for number in range(40)],
            "airings": [1000, 1000, *[1] * 38],
            "split": ["placeholder", *["train"] * 39],
        }
    )


def vectors(seed: int) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).standard_normal((40, 8)).astype(np.float32))


def test_drawing_is_reproducible_by_airings_and_without_placeholders(titles):
    drawn = [draw(titles, 10, seed=seed) for seed in range(20)]
    assert drawn[3].tolist() == draw(titles, 10, seed=3).tolist()
    assert not any(0 in rows for rows in drawn)
    assert sum(rows[0] == 1 for rows in drawn) > 4  # 30 airings count, of 68: drawn first by 44 %
    assert sorted(draw(titles, 39, seed=0).tolist()) == list(range(1, 40))


def test_sets_of_one_seed_share_no_title(titles):
    first, second = draw(titles, 10, seed=1), draw(titles, 10, seed=1, skip=10)
    assert draw(titles, 20, seed=1).tolist() == [*first, *second]
    with pytest.raises(ValueError, match="the guide has 39"):
        draw(titles, 10, seed=1, skip=30)


def test_neighbours_are_the_nearest_of_five_other_families(titles):
    angles = np.linspace(0, 1, 40)  # the nearest of a title are those of the next numbers
    line = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert nearest(line, titles, np.array([39])) == [
        ("Title 37", "Title 35", "Title 33", "Title 31", "Title 29")
    ]
    assert "Title 0" not in nearest(line, titles, np.array([2]))[0]  # a placeholder
    line[30:38] = 0  # of which nothing is known
    assert nearest(line, titles, np.array([39]))[0][0] == "Title 29"


def test_the_key_names_the_systems_of_each_column(titles, tmp_path):
    rows, systems = draw(titles, 20, seed=2), {"one": vectors(1), "other": vectors(2), "same": vectors(1)}
    shown = make_lists(titles, systems, rows, seed=2)
    assert shown == make_lists(titles, systems, rows, seed=2)
    others = make_lists(titles, systems, rows[::-1], seed=2)[::-1]
    orders = [[one.systems for one in listed] for listed in (shown, others)]
    assert sum(one != other for one, other in zip(*orders, strict=True)) >= 4  # another set, another shuffle
    for row, one in zip(rows, shown, strict=True):
        assert sorted(one.systems) == [["one", "same"], ["other"]]
        for own, names in zip(one.lists, one.systems, strict=True):
            assert own == nearest(systems[names[0]], titles, np.array([row]))[0]
    assert len({one.systems[0][0] for one in shown}) == 2  # columns are shuffled

    write_lists(shown, tmp_path / "lists.md")
    write_key(shown, tmp_path / "key.json", {"guide": "toy"})
    seen = (tmp_path / "lists.md").read_text(encoding="utf-8")
    assert "same" not in seen
    key = json.loads((tmp_path / "key.json").read_text(encoding="utf-8"))
    for number, one in enumerate(shown, 1):
        assert list(key["columns"][str(number)].values()) == one.systems
        section = seen.split(f"## {number}. ")[1].split("##")[0].splitlines()
        assert section[0] == one.title
        lists = zip(ascii_uppercase, one.lists, strict=False)
        assert section[2:4] == [f"- {letter}: {' | '.join(own)}" for letter, own in lists]


def write_set(root: Path, columns: dict, *ratings: dict) -> Path:
    folder, key = root / "ratings" / "toy", root / "keys" / "toy.json"
    for parent in (folder, key.parent):
        parent.mkdir(parents=True)
    key.write_text(json.dumps({"columns": columns}), encoding="utf-8")
    for name, reader in zip(("ratings.json", "ratings-2.json"), ratings, strict=False):
        (folder / name).write_text(json.dumps(reader), encoding="utf-8")
    return folder


COLUMNS = {
    "1": {"A": ["old"], "B": ["new", "small"]},
    "2": {"A": ["new"], "B": ["old", "small"]},
    "3": {"A": ["new"], "B": ["small"], "C": ["old"]},
}
RATINGS = {"1": {"A": 2, "B": 7}, "2": {"A": 3, "B": 4}, "3": {"A": 9, "B": 6, "C": 6}}


def test_scores_by_hand(tmp_path):
    rated = read_set(write_set(tmp_path, COLUMNS, RATINGS))
    assert rated[0] == {"old": 2, "new": 7, "small": 7}
    lines = {line.system: line for line in score(rated, "old")}
    new, small, old = lines["new"], lines["small"], lines["old"]
    assert (new.titles, new.wins, new.losses) == (3, 2, 1)
    assert (new.mean, new.high, new.low) == pytest.approx((19 / 3, 2 / 3, 1 / 3))
    assert new.difference == pytest.approx((5 - 1 + 3) / 3)
    assert new.interval == [-1, 5]  # of three titles, a resample may hold one alone
    assert (small.wins, small.losses, small.difference) == (1, 0, pytest.approx(5 / 3))
    assert (old.mean, old.difference) == (4, 0)
    assert "| new | 3 | 6.33 | 67% | 33% | 2 | 1 | +2.33 [-1.00, 5.00] |" in table(lines.values(), "old")


def test_two_readers_are_averaged_and_their_agreement_is_measured(tmp_path):
    second = {"1": {"A": 4, "B": 9}, "2": {"A": 5, "B": 6}, "3": {"A": 10, "B": 8, "C": 7}}
    folder = write_set(tmp_path, COLUMNS, RATINGS, second)
    assert read_set(folder)[0] == {"old": 3, "new": 8, "small": 8}
    ratings = [[value for each in one.values() for value in each.values()] for one in (RATINGS, second)]
    assert agreement([folder]) == (pytest.approx(np.corrcoef(ratings)[0, 1]), 7)
    (folder / "ratings-2.json").write_text(json.dumps(second | {"1": {"A": 4, "B": 11}}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"ratings-2\.json: ratings are 0 to 10"):
        read_set(folder)


def test_an_editor_chooses_from_the_same_titles(titles, tmp_path):
    rows, file = draw(titles, 2, seed=2), tmp_path / "editor.json"
    write_titles(titles, rows, tmp_path / "titles.md")
    listed = (tmp_path / "titles.md").read_text(encoding="utf-8").splitlines()
    assert f"2. Title {rows[1]}" in listed and "Title 0" not in listed and "Title 39" in listed
    chosen = {"1": [f"Title {n}" for n in range(1, 6)], "2": [f"Title {n}" for n in range(11, 16)]}
    file.write_text(json.dumps(chosen), encoding="utf-8")
    editor = read_editor(file, titles, rows)
    shown = make_lists(titles, {"one": vectors(1)}, rows, seed=2, editor=editor)
    columns = [dict(zip(map(tuple, one.systems), one.lists, strict=True)) for one in shown]
    assert [each["editor",] for each in columns] == [tuple(chosen["1"]), tuple(chosen["2"])]
    for wrong in (["Title 1"] * 5, [*chosen["2"][:4], "Elsewhere"]):
        file.write_text(json.dumps(chosen | {"2": wrong}), encoding="utf-8")
        with pytest.raises(ValueError, match="choose 5 titles of the guide for 2"):
            read_editor(file, titles, rows)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"1": {"A": 2}}, r"missing \[\('1', 'B'\)\]"),
        ({"4": {"A": 2}}, r"not asked for \[\('4', 'A'\)\]"),
        ({"1": {"A": 2, "B": 11}}, "ratings are 0 to 10"),
    ],
)
def test_ratings_that_do_not_answer_the_lists(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        read_set(write_set(tmp_path, COLUMNS, RATINGS | changed))


def test_the_reference_must_be_rated(tmp_path):
    with pytest.raises(ValueError, match="not among old, new, small"):
        score(read_set(write_set(tmp_path, COLUMNS, RATINGS)), "oldest")


@pytest.mark.slow
def test_the_command_scores(tmp_path):
    folder = str(write_set(tmp_path, COLUMNS, RATINGS))
    command = [
        sys.executable,
        "-m",
        "benchmarks.quality.blind_ratings",
        "score",
        folder,
        "--reference",
        "small",
    ]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    assert "| new | 3 | 6.33 | 67% | 33% | 1 | 1 | +0.67 [-1.00, 3.00] |" in done.stdout
