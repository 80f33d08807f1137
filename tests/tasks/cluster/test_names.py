"""What clusters are called, on a guide small enough to name by hand."""

import numpy as np

from tasks.cluster.names import name_clusters

COOKING = ["The Great Kitchen", "Kitchen of the Year", "Kitchen Stories", "The Pasta Kitchen", "A Day in the Kitchen"]
FOOTBALL = ["Football Live", "The Football Hour", "FOOTBALL FOCUS", "Football in the Park", "Legends of the Football"]
NATURE = ["The Whales", "Wild Whales of the North", "Whales and the Sea", "Voyage of the Whales", "The Whale"]


def name(titles: list[str], clusters: list[int], labels: list[list[str]] | None = None, vectors: np.ndarray | None = None):
    vectors = np.ones((len(titles), 1), np.float32) if vectors is None else vectors
    return name_clusters(titles, [title.split() for title in titles], labels or [[] for _ in titles], vectors, np.array(clusters))


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
    assert (horror.name, horror.label, horror.label_share) == ("Horror", "horror", 1.0)
    assert (football.name, football.label) == ("Football", "sport")


def test_without_words_and_labels_the_most_central_title_is_the_name():
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, -1], [0, -1], [0, -1]], dtype=np.float32)
    titles = ["Left", "Middle", "Right", "Down Under", "Down Below", "Down Deep"]
    first, second = name(titles, [0, 0, 0, 1, 1, 1], vectors=vectors)
    assert first.name == "Middle" and first.titles == ["Middle", "Right", "Left"] and first.label is None
    assert second.name == "Down"


def test_no_two_names_are_alike():
    names = [named.name for named in name(["Solo"] * 9, [0, 0, 0, 1, 1, 1, 2, 2, 2])]
    assert len(set(names)) == 3


def test_an_ending_does_not_make_another_word():
    assert name(["Match one", "Matches two", "Match three", "Matches four"], [0, 0, 0, 0])[0].tokens == ["Match"]


def test_at_most_five_central_titles():
    assert len(name([f"Title {number}" for number in range(9)], [0] * 9)[0].titles) == 5


def test_noise_has_no_name():
    assert name(["One", "Two"], [-1, -1]) == []


def test_empty():
    assert name_clusters([], [], [], np.zeros((0, 3), np.float32), np.zeros(0, np.int32)) == []
