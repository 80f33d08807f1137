"""Names of clusters on a small guide."""

from collections.abc import Sequence

import numpy as np
import pytest

from tasks.cluster.candidates import CandidateFinder, NamingInputs, find_films, most_common_language
from tasks.cluster.names import name_clusters
from tasks.cluster.phrases import Phrases
from tasks.cluster.subjects import find_title_subjects, read_subjects

PREMIER = [f"Premier League: {place} v {place}ton" for place in ("Alba", "Corte", "Dunne", "Essa")]
CUP = [f"Southern Cup: {place} v {place}ona" for place in ("Iban", "Joli", "Kora", "Luza")]
OTHERS = ["Harvest", "Lighthouse", "Marble", "Northern", "Oleander", "Pavement", "Quarry", "Riverbed"]


def name(
    titles: Sequence[str],
    clusters: Sequence[int],
    labels: Sequence[Sequence[str]] | None = None,
    within: Sequence[str] | None = None,
    vectors: np.ndarray | None = None,
    **more,
):
    empty: list[list[str]] = [[] for _ in titles]
    shows = [title.casefold() for title in titles]
    about = {"labels": labels or empty, "channels": empty, "is_film": np.zeros(len(titles), bool)} | more
    vectors = np.ones((len(titles), 1), np.float32) if vectors is None else vectors
    candidates = CandidateFinder(NamingInputs(titles=titles, shows=shows, **about))
    return name_clusters(candidates, vectors, np.array(clusters, dtype=np.int64), within)


def names(*inputs, **more) -> list[str]:
    return [one.name for one in name(*inputs, **more)]


def test_a_general_part_and_what_several_shows_share():
    labels = [["sport", "football"]] * 8 + [[]] * 24
    others = [f"{title} {place}" for place in "abc" for title in OTHERS]
    football, _ = names([*PREMIER, *CUP, *others], [0] * 8 + [1] * 24, labels)
    assert football in ("Football: Southern Cup, Premier League", "Football: Premier League, Southern Cup")


def test_without_distinctive_parts_the_name_is_the_general_part():
    titles = ["Alien", "Psycho", "Halloween", "Saw", "Ring"]
    horror, _ = name([*titles, *OTHERS], [0] * 5 + [1] * 8, [["horror"]] * 4 + [[]] * 9)
    assert (horror.name, horror.label, horror.label_share) == ("Horror", "horror", 0.8)


def test_a_narrow_subject_that_most_have_is_the_general_part_and_a_broad_one_names_its_parts():
    labels = [["documentary", "true crime"]] * 8 + [["documentary", "history"]] * 4 + [["documentary"]] * 4
    crimes, mixed = names(
        [f"{title} {place}" for place in "ab" for title in OTHERS], [0] * 8 + [1] * 8, labels
    )
    assert (crimes, mixed) == ("True crime", "Documentaries: History")


def test_long_single_programmes_of_stories_are_films():
    labels = [["drama"]] * 4 + [["comedy"]] * 4 + [["drama"]] * 8 + [["news"]] * 64
    titles = [f"{title} {place}" for place in "abcdefghij" for title in OTHERS]
    films, series, _ = names(titles, [0] * 8 + [1] * 8 + [2] * 64, labels, is_film=np.arange(80) < 8)
    assert (films, series) == ("Films: Comedy, Drama", "Drama")
    tokens = [["duration:120"], ["duration:120", "manner:episodes:2"], ["duration:30"], []]
    assert find_films(tokens).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("stem", "forms"),
    [
        ("a word of few titles", ["Ramadan Nights", "Ramadan Days", *OTHERS[:6]]),
        ("a possessive", ["Jamie's One", "Jamie's Two", "Jamie's Six", "Jamie's Ten"]),
        ("letters and numbers", ["PL EFL One", "PL EFL Two", "S/Lge Six Hlts", "S/Lge Ten Hlts", "1's Nine"]),
        ("small words", ["Song of the One", "Song of the Two", "Tale of the Six", "Tale of the Ten"]),
    ],
)
def test_no_fragment_is_in_a_name(stem: str, forms: list[str]):
    found = names([*forms, *PREMIER], [0] * len(forms) + [1] * 4, [["music"]] * len(forms) + [["sport"]] * 4)
    assert found[0] == "Music", stem


def test_numbered_episodes_of_a_show_form_no_phrase():
    titles = [f"Late Lantern {number}" for number in range(6)]
    about = NamingInputs(
        titles=titles + OTHERS,
        shows=["late lantern"] * 6 + OTHERS,
        labels=[["news"]] * 6 + [[]] * 8,
        channels=[[]] * 14,
        is_film=np.zeros(14, bool),
    )
    vectors, clusters = np.ones((14, 1), np.float32), np.array([0] * 6 + [1] * 8)
    assert name_clusters(CandidateFinder(about), vectors, clusters)[0].name == "News"


def test_channels_distinguish_clusters_of_one_subject():
    titles = [f"{title} {place}" for place in "abc" for title in OTHERS]
    channels = [["Sky News HD"]] * 8 + [["Arena One HD", "Arena Two"]] * 8 + [[]] * 8
    found = names(titles, [0] * 8 + [1] * 8 + [2] * 8, [["news"]] * 24, channels=channels)
    assert found == ["News: Sky News", "News: Arena", "News"]


def test_names_are_in_the_language_of_the_guide():
    titles = [f"{title} {place}" for place in "ab" for title in OTHERS]
    labels = [["dokumentarfilm", "natur und tiere"]] * 8 + [["dokumentarfilm"]] * 8
    assert names(titles, [0] * 8 + [1] * 8, labels, language="de") == [
        "Natur und Tiere",
        "Dokumentationen",
    ]
    assert names(titles, [0] * 8 + [1] * 8, labels, language="fi") == ["Wildlife", "Documentaries"]
    assert most_common_language(["de-AT", "de", "en", None]) == "de" and most_common_language([None]) == "en"


def test_a_category_that_the_table_lacks_is_written_with_a_capital():
    assert names(OTHERS, [0] * 8, [["mischmasch"]] * 8) == ["Mischmasch"]


def test_names_are_distinct():
    found = names([*OTHERS] * 3, [0] * 8 + [1] * 8 + [2] * 8, [["news"]] * 24)
    assert len(set(found)) == 3 and all(one.startswith("News") for one in found)


def test_a_subcluster_without_distinctive_words_has_no_name():
    titles, clusters, labels = [*OTHERS] * 3, [0] * 8 + [1] * 8 + [2] * 8, [["news"]] * 16 + [["sport"]] * 8
    assert names(titles, clusters, labels, within=["News", "Sport", "Sport"]) == ["", "News", ""]
    channels = [["Sky News"]] * 8 + [[]] * 16
    told = names(titles, clusters, labels, within=["News"] * 3, channels=channels)
    assert told == ["News: Sky News", "", "Sport"]


def test_a_narrower_subject_replaces_the_broader_one():
    labels = [["drama", "krimi"]] * 4 + [["drama"]] * 4 + [["sport"]] * 8
    found = names([f"{title} {place}" for place in "ab" for title in OTHERS], [0] * 8 + [1] * 8, labels)
    assert found == ["Crime drama", "Sport"]


@pytest.mark.parametrize(
    ("names_of_channels", "told"),
    [
        (["Arena Perth", "Arena Sydney"], "Arena"),  # what the names of several begin with
        (["New Arena Network"], "New Arena Network"),  # of one channel the whole name
    ],
)
def test_channels_are_named_completely_or_by_a_common_prefix(names_of_channels, told):
    labels, channels = [["news"]] * 16, [[]] * 8 + [names_of_channels] * 8
    titles = [f"{title} {place}" for place in "ab" for title in OTHERS]
    assert names(titles, [0] * 8 + [1] * 8, labels, channels=channels) == ["News", f"News: {told}"]


def test_channels_of_few_titles_or_another_subject_are_not_named():
    titles, clusters = [f"{title} {place}" for place in "ab" for title in OTHERS], [0] * 8 + [1] * 8
    for channels in [[["Arena One"]] * 3 + [[]] * 13, [["Arena Sport"]] * 8 + [[]] * 8]:
        found = names(titles, clusters, [["news"]] * 8 + [["music"]] * 8, channels=channels)
        assert found == ["News", "Music"]


def test_without_categories_and_phrases_the_most_central_title_is_the_name():
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, -1], [0, -1], [0, -1]], dtype=np.float32)
    titles = ["Left", "Middle", "Rightmost", "Down Under", "Down Below", "Down Deep"]
    first, second = name(titles, [0, 0, 0, 1, 1, 1], vectors=vectors)
    assert first.name == "“Left”"  # the shortest of the most central ones
    assert first.titles == ["Middle", "Rightmost", "Left"] and first.label is None
    assert second.name == "“Down Deep”"


def encode(texts: Sequence[str]) -> np.ndarray:
    """Toy encoder: the first axis is fishing, the second jewellery, the third everything."""
    rows = [["Fish" in text, "Jewel" in text, 1] for text in texts]
    return np.array(rows, np.float32) / np.linalg.norm(rows, axis=1, keepdims=True)


def test_sentence_vectors_find_subjects_that_categories_lack():
    titles = [f"Fish{word.casefold()}" for word in OTHERS] + [f"Jewel{word.casefold()}" for word in OTHERS]
    clusters, labels = [0] * 8 + [1] * 8, [["lifestyle"]] * 8 + [["shopping"]] * 8
    meaning = {"sentence_vectors": encode(titles).astype(np.float16), "encode": encode}
    assert names(titles, clusters, labels) == ["Lifestyle", "Shopping"]
    assert names(titles, clusters, labels, **meaning) == [
        "Lifestyle: Fishing and hunting",
        "Shopping: Jewellery",
    ]
    none = {"sentence_vectors": np.zeros((16, 0), np.float16), "encode": encode}
    assert names(titles, clusters, labels, **none) == ["Lifestyle", "Shopping"]


def test_subjects_of_few_titles_are_not_in_the_name():
    titles = [f"Fish {word}" for word in OTHERS[:2]] + OTHERS[2:] + [f"Jewel {word}" for word in OTHERS]
    clusters, labels = [0] * 8 + [1] * 8, [["lifestyle"]] * 8 + [["shopping"]] * 8
    meaning = {"sentence_vectors": encode(titles).astype(np.float16), "encode": encode}
    assert names(titles, clusters, labels, **meaning) == ["Lifestyle", "Shopping: Jewellery"]


def test_noise_has_no_name():
    assert name(["One", "Two"], [-1, -1]) == []


def test_empty():
    assert name([], [], vectors=np.zeros((0, 3), np.float32)) == []


def test_at_most_five_central_titles():
    assert len(name([f"Title {number}" for number in range(9)], [0] * 9)[0].titles) == 5


def test_the_category_is_the_one_that_most_titles_carry_and_of_nearly_equal_ones_the_rarest_in_the_guide():
    titles = [f"Sermon {number}" for number in range(10)] + [f"Bulletin {number}" for number in range(20)]
    labels = [["news", "religion"]] * 9 + [["news"]] * 21
    sermons, bulletins = name(titles, [0] * 10 + [1] * 20, labels)
    assert (sermons.label, sermons.label_share, bulletins.label) == ("religion", 0.9, "news")
    labels[:4] = [["news"]] * 4  # 5 of 10 are religion, 10 of 10 news
    assert name(titles, [0] * 10 + [1] * 20, labels)[0].label == "news"
    assert name(titles, [0] * 10 + [1] * 20, [["religion"]] * 3 + [[]] * 27)[0].label is None


def test_phrases_are_written_as_most_titles_write_them():
    titles = ["Grand Prix One", "The GRAND PRIX: One", "grand Prix Two", "Grand Prix"]
    phrases = Phrases(titles, titles)
    (rows,) = (
        rows for phrase, rows in phrases.find_shared(range(4), 3).items() if phrase == ("grand", "prix")
    )
    assert phrases.most_common_spelling(("grand", "prix"), rows) == "Grand Prix" and rows == [
        0,
        2,
        3,
    ]  # not those in capitals
    assert ("prix", "one") not in phrases.of_title(1)  # a colon parts them


def test_the_table_of_subjects_is_consistent():
    subjects = read_subjects()
    languages = {frozenset(one.names) for one in subjects}
    assert len(languages) == 1 and {"en", "de", "fr", "es", "pt", "it", "nl"} <= languages.pop()
    assert len({one.key for one in subjects}) == len(subjects)
    held = find_title_subjects([["fussball"], []], [[], ["golf"]], "de")
    assert [{subjects[place].key for place in np.flatnonzero(row)} for row in held] == [
        {"Football", "Sport"},
        {"Golf", "Sport"},
    ]
