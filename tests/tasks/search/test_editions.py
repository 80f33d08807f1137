"""Editions of a show are one line; other titles with the same beginning are not."""

import pytest

from sample.lists import LANGUAGES, read_titles
from tasks.search.editions import EditionGroup, group_editions, show_name

SHOWS = [
    ["MasterChef UK", "MasterChef: The Professionals", "MasterChef Australia", "Celebrity MasterChef"],
    ["Law & Order: SVU", "Law & Order: Criminal Intent", "Law & Order", "Law & Order: UK"],
    ["CSI: Miami", "CSI", "CSI: NY"],
    ["The Real Housewives of Atlanta", "The Real Housewives of Beverly Hills"],
    ["House Hunters", "House Hunters International", "House Hunters: All-Stars", "House Hunters Renovation"],
    ["Planet Earth", "Planet Earth II", "Planet Earth III"],
    ["Gogglebox", "Gogglebox Australia", "Celebrity Gogglebox UK"],
    ["Mission: Impossible", "Mission: Impossible - Ghost Protocol", "Mission:Impossible III"],
    ["Sky News at Ten", "Sky News with Kamali Melbourne"],
    ["Tatort: Liebeswut", "Tatort", "Tatort - Der Inder"],
    ["Bauer sucht Frau International", "Bauer sucht Frau"],
    ["Das perfekte Dinner", "Das perfekte Dinner - Wer ist der Profi?"],
    ["Fack ju Göhte", "Fack ju Göhte 3"],
    ["Koh-Lanta : les 4 terres", "Koh-Lanta"],
    ["Top Chef", "Top Chef Germany"],
    ["Casa contro casa - Anteprima", "Casa contro casa"],
    ["Hvem vil være millionær?", "Hvem vil være millionær? Classic", "Hvem vil være millionær? Sverige"],
    ["Dívka na farmě", "Dívka na farmě - Halloween"],
    ["Μαμά μου - Επεισόδιο", "Μαμά μου"],
]
APART = [
    ["The Bill", "The Chase", "The One Show"],
    ["The Good Wife", "The Good Place", "The Good Life"],
    ["House", "House Hunters"],
    ["Sherlock", "Sherlock Holmes"],
    ["Mom", "Teen Mom"],
    ["Wild China", "Wild Canada", "Wild"],
    ["Good Morning", "Good Morning Scotland"],
    ["This Week", "This Week Back Then"],
    ["Premier League", "Premier League Darts"],
    ["Football: Marseille - Lyon", "Football: Lens - Lille"],
    ["Fußball: WM-Klassiker", "Fußball: Europa League"],
    ["Studio 54", "Studio 60"],
    ["20/20", "24", "1408", "9-1-1: Lone Star", "20:15 Kino"],
    ["UK", "Australia", "International"],
    ["Der Alte", "Der Kommissar", "Die Anstalt"],
    ["Made in Germany", "Made in Italia", "Out of Africa"],
    ["Secrets of the Dead", "Secrets of World War II"],
    ["Le journal de 20 heures", "Le juste prix"],
]


@pytest.mark.parametrize("titles", SHOWS, ids=lambda titles: titles[0])
def test_editions_fold_in_any_order(titles):
    for order in (titles, titles[::-1]):
        assert group_editions(order) == [EditionGroup(0, tuple(range(1, len(titles))))]


@pytest.mark.parametrize("titles", APART, ids=lambda titles: titles[0])
def test_other_shows_stay(titles):
    for order in (titles, titles[::-1]):
        assert group_editions(order) == [EditionGroup(place, ()) for place in range(len(titles))]


def test_editions_have_the_rank_of_the_nearest_edition():
    ranked = [
        "The Chase",
        "MasterChef Australia",
        "CSI: NY",
        "Pointless",
        "MasterChef Junior",
        "CSI: Miami",
        "MasterChef",
    ]
    assert group_editions(ranked) == [
        EditionGroup(0, ()),
        EditionGroup(1, (4, 6)),
        EditionGroup(2, (5,)),
        EditionGroup(3, ()),
    ]


def test_a_seventh_of_the_sample_are_editions():
    titles = [listing.title for language in LANGUAGES for listing in read_titles(language)]
    folds = group_editions(titles)
    assert sorted(place for fold in folds for place in (fold.first, *fold.others)) == list(range(len(titles)))
    sizes = sorted((1 + len(fold.others) for fold in folds), reverse=True)
    assert 8 <= sizes[0] <= 12  # Star Trek, Tatort
    assert 0.1 < sum(size for size in sizes if size > 1) / len(titles) < 0.2


def test_name():
    assert show_name("Celebrity MasterChef") == ("masterchef", True)
    assert show_name("MasterChef") == ("masterchef", True)
    assert show_name("The Real Housewives of Atlanta") == ("the real housewives", False)


@pytest.mark.parametrize("titles", [[], [""], ["", ":", "…"]], ids=["empty", "blank", "no_words"])
def test_titles_without_words(titles):
    assert sum(1 + len(fold.others) for fold in group_editions(titles)) == len(titles)
