"""Dirty categories to labels: each rule with values as guides have them."""

from pathlib import Path

import numpy as np
import pytest

from tasks.preprocess.categories import (
    MAPPED,
    Labels,
    MappingError,
    clean_category,
    label_titles,
    map_category,
    read_mapping,
)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("News", ["news"]),
        ("NEWS", ["news"]),
        ("  Sports event. ", ["sports event"]),
        ("ＮＥＷＳ", ["news"]),  # full width
        ("Krimi\u200b", ["krimi"]),
        ("Børn/unge", ["børn", "unge"]),
        ("Drama, Crime; Mystery|Thriller", ["drama", "crime", "mystery", "thriller"]),
        ("Nature,,Animals,", ["nature", "animals"]),
        ("Food & Drink", ["food & drink"]),
        ("Science-fiction", ["science-fiction"]),
        ("CinÃ©ma d'horreur", ["cinéma d'horreur"]),
        ("Αθλητικά", ["αθλητικά"]),
    ],
)
def test_clean_values(raw: str, clean: list[str]):
    assert clean_category(raw) == tuple((value, "") for value in clean)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"id": 12, "genre": "Drama"}', "code"),
        ('<a href="/genre/drama">Drama</a>', "code"),
        ("https://example.org/genre", "code"),
        ("www.example.org", "code"),
        ("Food &amp; Drink", "code"),
        ("[Drama]", "code"),
        ("7", "digits"),
        ("90s music", "digits"),
        ("Season 2", "digits"),
        ("the long and winding song name of a well known band", "too long"),
        ("tv", "too short"),
        ("R", "too short"),
        ("Series", "generic"),
        ("ENTERTAINMENT", "generic"),
        ("TV Show", "generic"),
        ("Otros", "generic"),
        ("All Kids", "generic"),
        ("Paid Programming", "generic"),
    ],
)
def test_dropped_values_have_a_reason(raw: str, reason: str):
    assert [its for _, its in clean_category(raw)] == [reason]


def test_a_single_value_of_a_list_can_be_dropped():
    assert clean_category("Series, Drama / 2024") == (
        ("series", "generic"),
        ("drama", ""),
        ("2024", "digits"),
    )


@pytest.mark.parametrize("raw", ["", " ", ",", " ; / ", "-", "\u200b"])
def test_blank_values_have_no_category(raw: str):
    assert clean_category(raw) == ()


def label(
    rows: list[tuple[str, str, int]],
    titles: int,
    training: list[bool] | None = None,
    per_feed: dict[str, int] | None = None,
    minimum: int = 2,
    share: float = 0.4,
):
    return label_titles(
        as_arrays(rows),
        per_feed or {"feed": titles},
        np.array(training or [True] * titles),
        minimum_titles=minimum,
        largest_share=share,
    )


def as_arrays(rows: list[tuple[str, str, int]]) -> list[tuple[str, str, np.ndarray]]:
    return [(source, category, np.array([title], dtype=np.int32)) for source, category, title in rows]


def of_titles(labels: Labels) -> list[list[int]]:
    return [labels.title_labels[row].tolist() for row in range(len(labels.title_labels))]


def test_corrections_replace_the_categories_of_feeds():
    rows = [("feed", "News", 0), ("feed", "News", 1), ("feed", "Sport", 2), ("feed", "Sport", 3)]
    arrays, training = as_arrays([*rows, ("feed", "Odd", 3)]), np.ones(20, dtype=bool)
    corrected = {2: ("news",), 3: ("news", "sport")}
    labels = label_titles(
        arrays, {"feed": 20}, training, minimum_titles=1, largest_share=0.4, corrected=corrected
    )
    assert labels.names == ["news", "sport"] and of_titles(labels)[:5] == [[0], [0], [0], [0, 1], []]
    assert labels.spellings["news"] == "News" and not labels.dropped


def test_rare_categories_of_titles_are_stored():
    rows = [("feed", "News", 0), ("feed", "News", 1), ("feed", "Odd", 1), ("feed", "Odder", 2)]
    labels = label([*rows, ("feed", "Series", 3)], 20)
    assert labels.names == ["news"] and labels.rare_names == ["odd", "odder"]  # a generic one says nothing
    assert [labels.title_rare[row].tolist() for row in range(4)] == [[], [0], [1], []]


def test_case_variants_are_one_label():
    labels = label(
        [("feed", "News", 0), ("feed", "NEWS", 1), ("feed", "news, sport", 2), ("feed", "Sport", 3)], 10
    )
    assert labels.names == ["news", "sport"]
    assert of_titles(labels)[:4] == [[0], [0], [0, 1], [1]]


def test_labels_are_ordered_by_titles_then_by_name():
    rows = (
        [("feed", "beta", title) for title in (0, 1)]
        + [("feed", "alpha", title) for title in (2, 3)]
        + [("feed", "gamma", title) for title in (4, 5, 6)]
    )
    assert label(rows, 20).names == ["gamma", "alpha", "beta"]


def test_fewer_than_twenty_training_titles_are_no_label():
    rows = [("feed", "drama", title) for title in range(20)] + [
        ("feed", "opera", title) for title in range(19)
    ]
    training = [True] * 20 + [False] * 80
    labels = label(rows, 100, training, minimum=20)
    assert labels.names == ["drama"]
    assert ("opera", "on too few titles", 19) in labels.dropped


def test_held_out_titles_carry_labels_too():
    labels = label([("feed", "drama", title) for title in range(5)], 20, [True] * 3 + [False] * 17)
    assert of_titles(labels)[:6] == [[0]] * 5 + [[]]


def test_a_category_on_too_many_titles_of_a_feed_is_ignored_there():
    """41 of 100 titles of feed a; 5 of 50 of feed b, where it still means something."""
    rows = (
        [("a", "kids", title) for title in range(41)]
        + [("b", "kids", title) for title in range(100, 105)]
        + [("a", "news", title) for title in range(40)]
    )
    labels = label(rows, 150, per_feed={"a": 100, "b": 50})
    assert labels.names == ["news", "kids"]  # 40 of 100 is not more than 40 %
    of_title = of_titles(labels)
    assert of_title[:40] == [[0]] * 40 and of_title[40] == []
    assert of_title[100:105] == [[1]] * 5
    assert ("kids", "on too many titles of a feed", 41) in labels.dropped


def test_dropped_categories_are_ordered_by_titles():
    rows = [("feed", "Series", title) for title in range(3)] + [
        ("feed", "tv", 0),
        ("feed", "opera", 1),
        ("feed", "drama", 0),
        ("feed", "drama", 1),
    ]
    labels = label(rows, 10)
    assert labels.dropped == [
        ("series", "generic", 3),
        ("opera", "on too few titles", 1),
        ("tv", "too short", 1),
    ]
    assert labels.names == ["drama"]


def test_no_category_at_all():
    labels = label([], 3)
    assert labels.names == [] and of_titles(labels) == [[], [], []] and labels.dropped == []


MAPPING = {
    "børn/unge": "children",
    "kids": "children",
    "sports": "sport",
    "noise": "",
    "tv": "television",
    "series": "serial",
    "otros": "otros",
}


@pytest.mark.parametrize(
    ("raw", "mapped"),
    [
        ("Børn/unge", [("children", "")]),  # a whole value, before it is split
        ("Kids, Sports", [("children", ""), ("sport", "")]),  # parts
        ("Kids / Børn, unge", [("children", ""), ("børn", ""), ("unge", "")]),
        ("kids; KIDS", [("children", "")]),  # once
        ("NOISE", [("noise", MAPPED)]),
        ("Drama, noise", [("drama", ""), ("noise", MAPPED)]),
        ("TV", [("television", "")]),  # too short, but mapped
        ("Series", [("serial", "")]),  # generic, but mapped
        ("Otros", [("otros", "")]),  # generic, but the table keeps it as it is
        ("Otros; Drama", [("otros", ""), ("drama", "")]),
        ("Drama", [("drama", "")]),
        ("7", [("7", "digits")]),
        ("", []),
    ],
)
def test_the_mapping_table_comes_first(raw: str, mapped: list[tuple[str, str]]):
    assert map_category(raw, MAPPING) == tuple(mapped)


def map_and_label(rows: list[tuple[str, str, int]], titles_by_source: dict[str, int]) -> Labels:
    training = np.ones(20, dtype=bool)
    return label_titles(
        as_arrays(rows), titles_by_source, training, minimum_titles=2, largest_share=0.4, mapping=MAPPING
    )


def test_synonyms_are_merged_and_dropped_categories_are_reported():
    rows = [("feed", "Kids", 0), ("feed", "Børn/unge", 1), ("feed", "Noise", 2)]
    labels = map_and_label(rows, {"feed": 20})
    assert labels.names == ["children"] and of_titles(labels)[:3] == [[0], [0], []]
    assert labels.dropped == [("noise", MAPPED, 1)]


def test_a_label_has_its_most_frequent_spelling():
    rows = [("feed", "Kids", 0), ("feed", " Børn/unge ", 1), ("other", "Børn/unge", 2), ("feed", "Kids", 3)]
    rows += [("feed", "Kids; Crime", title) for title in range(5, 9)]
    rows += [("other", "Børn/unge", 4)]
    labels = map_and_label(rows, {"feed": 40, "other": 40})
    assert labels.names == ["children", "crime"]
    assert labels.spellings == {"children": "Børn/unge"}  # three titles; no category is Crime alone


def test_the_bundled_table_holds_synonyms_alone():
    mapping = read_mapping()
    assert mapping["kids"] == "children" and mapping["tv-show"] == ""
    assert not set(mapping.values()) & set(mapping), "a canonical name is mapped again"
    assert all(
        map_category(canonical, {}) == ((canonical, ""),) for canonical in mapping.values() if canonical
    )


def test_a_custom_mapping_table(tmp_path: Path):
    file = tmp_path / "mine.csv"
    file.write_text('\ufeffraw,canonical\n"Krimi, Thriller",CRIME\nＮＥＷＳ,\n', encoding="utf-8")
    assert read_mapping(str(file)) == {"krimi, thriller": "crime", "news": ""}
    assert map_category("Krimi, Thriller", read_mapping(str(file))) == (("crime", ""),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from,to\na,b\n", "expected raw,canonical"),
        ("raw,canonical\na,b\nA,c\n", "line 3: 'a' is mapped twice"),
        ("raw,canonical\n,b\n", "no category"),
    ],
)
def test_invalid_mapping_tables_are_refused(tmp_path: Path, text: str, message: str):
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    with pytest.raises(MappingError, match=message):
        read_mapping(str(tmp_path / "bad.csv"))
    (tmp_path / "bad.csv").write_bytes("raw,canonical\nComédie,comedy\n".encode("cp1252"))
    with pytest.raises(MappingError, match=r"bad\.csv: .*expected a CSV file in UTF-8"):
        read_mapping(str(tmp_path / "bad.csv"))
    with pytest.raises(MappingError, match="No such file"):
        read_mapping(str(tmp_path / "missing.csv"))
