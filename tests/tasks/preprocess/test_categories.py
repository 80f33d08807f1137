"""Dirty categories to labels: each rule with values as guides have them."""

import pytest

from tasks.preprocess.categories import clean_category, generic_categories, label_titles


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


def test_one_value_of_a_list_can_be_dropped_alone():
    assert clean_category("Series, Drama / 2024") == (("series", "generic"), ("drama", ""), ("2024", "digits"))


@pytest.mark.parametrize("raw", ["", " ", ",", " ; / ", "-", "\u200b"])
def test_nothing_is_nothing(raw: str):
    assert clean_category(raw) == ()


def test_the_list_holds_the_names_of_the_design():
    assert {"series", "entertainment", "tv show", "all shows", "otros", "all kids"} <= generic_categories()
    assert all(name == name.strip().casefold() for name in generic_categories())


def label(rows: list[tuple[str, str, int]], titles: int, training: list[bool] | None = None, per_feed: dict[str, int] | None = None, minimum: int = 2, share: float = 0.4):
    return label_titles(rows, per_feed or {"feed": titles}, training or [True] * titles, minimum, share)


def test_case_doubles_are_one_label():
    labels = label([("feed", "News", 0), ("feed", "NEWS", 1), ("feed", "news, sport", 2), ("feed", "Sport", 3)], 10)
    assert labels.names == ["news", "sport"]
    assert labels.of_title[:4] == [[0], [0], [0, 1], [1]]


def test_order_is_by_titles_then_by_name():
    rows = [("feed", "beta", title) for title in (0, 1)] + [("feed", "alpha", title) for title in (2, 3)] + [("feed", "gamma", title) for title in (4, 5, 6)]
    assert label(rows, 20).names == ["gamma", "alpha", "beta"]


def test_fewer_than_twenty_training_titles_are_no_label():
    rows = [("feed", "drama", title) for title in range(20)] + [("feed", "opera", title) for title in range(19)]
    training = [True] * 20 + [False] * 80
    labels = label(rows, 100, training, minimum=20)
    assert labels.names == ["drama"]
    assert ("opera", "on too few titles", 19) in labels.dropped


def test_held_out_titles_do_not_make_a_label():
    """Twenty titles, one of them held out: what the model may learn from is nineteen."""
    rows = [("feed", "drama", title) for title in range(20)]
    assert label(rows, 100, [True] * 19 + [False] * 81, minimum=20).names == []


def test_held_out_titles_carry_labels_too():
    labels = label([("feed", "drama", title) for title in range(5)], 20, [True] * 3 + [False] * 17)
    assert labels.of_title[:6] == [[0]] * 5 + [[]]


def test_a_category_on_too_many_titles_of_a_feed_says_nothing_there():
    """41 of 100 titles of feed a; 5 of 50 of feed b, where it still means something."""
    rows = [("a", "kids", title) for title in range(41)] + [("b", "kids", title) for title in range(100, 105)] + [("a", "news", title) for title in range(40)]
    labels = label(rows, 150, per_feed={"a": 100, "b": 50})
    assert labels.names == ["news", "kids"]  # 40 of 100 is not more than 40 %
    assert all(labels.of_title[title] == [0] for title in range(40)) and labels.of_title[40] == []
    assert all(labels.of_title[title] == [1] for title in range(100, 105))
    assert ("kids", "on too many titles of a feed", 41) in labels.dropped


def test_the_report_counts_what_was_dropped_most_first():
    rows = [("feed", "Series", title) for title in range(3)] + [("feed", "tv", 0), ("feed", "opera", 1), ("feed", "drama", 0), ("feed", "drama", 1)]
    labels = label(rows, 10)
    assert labels.dropped == [("series", "generic", 3), ("opera", "on too few titles", 1), ("tv", "too short", 1)]
    assert labels.names == ["drama"]


def test_no_category_at_all():
    labels = label([], 3)
    assert labels.names == [] and labels.of_title == [[], [], []] and labels.dropped == []
