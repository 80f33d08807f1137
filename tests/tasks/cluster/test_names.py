"""What clusters are called, on a guide small enough to name by hand."""

import numpy as np

from tasks.cluster.names import name_clusters

COOKING = [
    "The Great Kitchen",
    "Kitchen of the Year",
    "Kitchen Stories",
    "The Pasta Kitchen",
    "A Day in the Kitchen",
]
FOOTBALL = [
    "Football Live",
    "The Football Hour",
    "FOOTBALL FOCUS",
    "Football in the Park",
    "Legends of the Football",
]
NATURE = ["The Whales", "Wild Whales of the North", "Whales and the Sea", "Voyage of the Whales", "The Whale"]


def name(
    titles: list[str],
    clusters: list[int],
    labels: list[list[str]] | None = None,
    vectors: np.ndarray | None = None,
):
    vectors = np.ones((len(titles), 1), np.float32) if vectors is None else vectors
    return name_clusters(titles, labels or [[] for _ in titles], vectors, np.array(clusters))


def test_the_telling_word_comes_first_and_articles_never():
    names = name(COOKING + FOOTBALL + NATURE, [0] * 5 + [1] * 5 + [2] * 5)
    assert [named.name for named in names] == ["Kitchen", "Football", "Whales"]
    assert [named.size for named in names] == [5, 5, 5]


def test_words_are_written_as_most_people_write_them():
    titles = ["NASA Nights", "NASA Today", "NASA Live", "BAKING hour", "Baking day", "Baking time"]
    assert [named.tokens[0] for named in name(titles, [0, 0, 0, 1, 1, 1])] == ["NASA", "Baking"]


def test_a_genre_without_a_common_word_is_called_by_its_label():
    titles = ["Alien", "Psycho", "Halloween", "Saw", "Ring", *FOOTBALL, *NATURE]
    labels = [["horror"], ["horror", "film"], ["horror"], ["horror"], []] + [["sport"]] * 5 + [["nature"]] * 5
    horror, football, _ = name(titles, [0] * 5 + [1] * 5 + [2] * 5, labels)
    assert (horror.name, horror.label, horror.label_share) == ("Horror", "horror", 0.8)
    assert (football.name, football.label) == ("Sport · Football", "sport")


def test_without_words_and_labels_the_most_central_title_is_the_name():
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, -1], [0, -1], [0, -1]], dtype=np.float32)
    titles = ["Left", "Middle", "Right", "Down Under", "Down Below", "Down Deep"]
    first, second = name(titles, [0, 0, 0, 1, 1, 1], vectors=vectors)
    assert first.name == "“Left”"  # the shortest of the most central ones
    assert first.titles == ["Middle", "Right", "Left"] and first.label is None
    assert second.name == "Down"


def test_no_two_names_are_alike():
    names = [named.name for named in name(["Solo"] * 9, [0, 0, 0, 1, 1, 1, 2, 2, 2])]
    assert len(set(names)) == 3


def test_an_ending_does_not_make_another_word():
    assert name(["Match one", "Matches two", "Match three", "Matches four"], [0, 0, 0, 0])[0].tokens == [
        "Match"
    ]


def test_at_most_five_central_titles():
    assert len(name([f"Title {number}" for number in range(9)], [0] * 9)[0].titles) == 5


def test_noise_has_no_name():
    assert name(["One", "Two"], [-1, -1]) == []


def test_empty():
    assert name_clusters([], [], np.zeros((0, 3), np.float32), np.zeros(0, np.int32)) == []


def test_the_category_is_the_one_that_most_titles_carry_and_of_nearly_equal_ones_the_rarest_in_the_guide():
    titles = [f"Sermon {number}" for number in range(10)] + [f"Bulletin {number}" for number in range(20)]
    labels = (
        [["news & documentary", "religion"]] * 9 + [["news & documentary"]] + [["news & documentary"]] * 20
    )
    sermons, bulletins = name(titles, [0] * 10 + [1] * 20, labels)
    assert (sermons.label, sermons.label_share, sermons.name) == ("religion", 0.9, "Religion · Sermon")
    assert (bulletins.label, bulletins.name) == ("news & documentary", "News & documentary · Bulletin")
    labels[:4] = [["news & documentary"]] * 4  # 5 of 10 are religion, 10 of 10 news & documentary
    assert name(titles, [0] * 10 + [1] * 20, labels)[0].label == "news & documentary"


def test_a_minority_gives_no_category_even_where_most_titles_have_none():
    labels = [["music"], ["music"], [], [], []] + [[]] * 5
    (cooking, _) = name(COOKING + FOOTBALL, [0] * 5 + [1] * 5, labels)
    assert (cooking.label, cooking.label_share, cooking.name) == (None, 0.0, "Kitchen")


def test_words_that_stand_together_are_one_phrase_and_written_as_titles_write_it():
    racing = [f"{place} F1 Grand Prix" for place in ("Chinese", "Japanese", "Dutch")] + [
        "F1 GP Notebook",
        "F1 GP Special",
        "F1 GP Gala",
        "F1 Gp Recap",
    ]
    racing, _ = name(racing + FOOTBALL, [0] * 7 + [1] * 5)
    assert racing.name == "F1"  # not also Grand, Prix and GP: what they cover, F1 covers
    bikes = [
        "Dutch GP Live",
        "Thai GP: Practice",
        "Chinese Gp Highlights",
        "GP Replay",
        "Speedway Grand Prix",
        "Sprint Grand Prix",
        "FORMULA E GRAND PRIX",
    ]
    assert name(bikes + FOOTBALL, [0] * 7 + [1] * 5)[0].name == "GP · Grand Prix"
    film = ["Despicable Me", "Despicable Me 2", "Despicable Me 3", "Minions: Rise", "Minions: Fall"]
    assert name(film + FOOTBALL, [0] * 5 + [1] * 5)[0].name == "Despicable Me · Minions"


def test_no_article_bracket_or_number_ends_a_phrase():
    titles = [
        "Tales of the Tower 1",
        "Tales of the Tower 2",
        "Tales of the Sea (live)",
        "Tales of the Sea (late)",
        *FOOTBALL,
        "The Whales of the Deep",
        *NATURE,
    ]
    assert name(titles, [0] * 4 + [1] * 5 + [2] * 6)[0].tokens[0] == "Tales"


def test_a_word_of_few_titles_is_in_no_name():
    titles = (
        [
            f"{first} {second}"
            for first in ("Red", "Green", "Blue", "Grey")
            for second in ("Wolf", "Crow", "Bear")
        ]
        + ["Ramadan Nights"] * 2
        + FOOTBALL
    )
    animals = name(titles[:12] * 2 + titles[12:], [0] * 26 + [1] * 5, [["religion"]] * 26 + [[]] * 5)[0]
    assert "Ramadan" not in animals.name and animals.name.startswith("Religion")


def test_a_category_is_written_as_titles_write_it():
    titles = ["WWE Raw", "WWE NXT", "SmackDown", "WrestleMania"]
    assert name(titles, [0] * 4, [["wwe"]] * 4)[0].name.split(" · ")[0] == "WWE"
