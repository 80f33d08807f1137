"""Kinds that guides state, and how they combine with the kinds of a title."""

import pytest

from tasks.kinds.decisions import kinds_of_programme
from tasks.kinds.kinds import KindPrediction, combine
from tasks.kinds.names import kinds_of_category, read_names

FILM = KindPrediction("film", 0.99, "predicted")
SERIES = KindPrediction("series", 0.98, "predicted")
OTHER = KindPrediction("other", 0.97, "predicted")


@pytest.mark.parametrize(
    ("category", "kinds"),
    [
        ("Spielfilm", ("film",)),
        ("Film d'aventures", ("film",)),
        ("Téléfilm pour la jeunesse", ("film", "children")),
        ("Film magazine", ("other",)),  # the longer name precedes the pattern "film *"
        ("Animatieserie", ("series",)),
        ("ΕΛΛΗΝΙΚΗ ΤΑΙΝΙΑ", ("film",)),  # capitals have no accents
        ("Actieserie, Nieuws", ("series", "news")),
        ("Movie / Drama", ("film",)),
        ("Drama", ()),
        ("Filmore", ()),
    ],
)
def test_categories_state_kinds(category: str, kinds: tuple[str, ...]) -> None:
    assert kinds_of_category(category) == kinds


def test_every_language_names_every_kind() -> None:
    assert len(read_names()) > 1000  # reading it checks that no name has two meanings


def test_a_film_has_no_other_kind_except_children() -> None:
    assert combine({"film", "sport", "children"}, numbered=False) == ("film", "children")
    assert combine({"other", "news"}, numbered=False) == ("news",)


@pytest.mark.parametrize(("numbered", "kinds"), [(True, ("series",)), (False, ())])
def test_an_episode_number_decides_between_film_and_series(numbered: bool, kinds: tuple[str, ...]) -> None:
    assert combine({"film", "series"}, numbered) == kinds


def test_the_guide_wins_over_predictions() -> None:
    titles = [(FILM,), (SERIES,), (OTHER,)]
    assert [each.kind for each in kinds_of_programme(titles[0], ["Serie"], False)] == ["series"]
    assert kinds_of_programme(titles[1], ["Movie"], False) == (KindPrediction("film", 1.0, "guide"),)
    assert [each.kind for each in kinds_of_programme(titles[2], ["News"], False)] == ["news"]
    assert [each.source for each in kinds_of_programme(titles[0], ["Kinder"], False)] == [
        "predicted",
        "guide",
    ]
    assert kinds_of_programme(titles[0], ["Drama"], False) == (FILM,)


def test_an_episode_number_means_no_predicted_film() -> None:
    titles = [(FILM,)]
    assert kinds_of_programme(titles[0], [], True) == (KindPrediction("series", 1.0, "structure"),)
    assert [each.kind for each in kinds_of_programme(titles[0], ["Movie"], True)] == ["film"]
    assert [each.kind for each in kinds_of_programme(titles[0], ["Sport"], True)] == ["sport"]
