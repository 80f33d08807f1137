"""Placeholders, shopping and adult programmes, and ordinary programmes that look like them."""

import pytest

from tasks.text.titles import parse_title
from tasks.tonight.exclusions import find_exclusion
from tasks.tonight.programmes import group_programmes
from tests.tasks.tonight.evenings import coming

CASES = [  # title, channel, categories; from real guides
    ("To Be Announced", "One", "", "placeholders"),
    ("Paid Programming", "FOX (KTTV) Los Angeles, CA", "Paid Program/Shopping", "shopping"),
    ("Temp-tations Presentable Kitchen", "QVC2", "", "shopping"),
    ("Blaupunkt Smart Entertainment", "TVSN", "Special Interest", "shopping"),
    ("MediaShop - Immer etwas Neues", "PULS24", "Einkauf", "shopping"),
    ("Teleshop 5: Tommy teleshopping", "RTL 5", "Overige", "shopping"),
    ("[K] Θυρίδα Τηλεπώλησης", "PELLA TV", "", "shopping"),
    ("Gallery", "IRIDA", "Τηλεαγορές", "shopping"),  # its last letter changes with case
    ("SPORT CLIPS", "SPORT1", "Erotischer Film/Action", "adult"),
    ("Sexy And She Knows It 1 (HARD)", "Film1 Action", "Film/Erotiek", "adult"),
    ("Πρόγραμμα Ενηλίκων", "Vivid Red HD", "", "adult"),
    ("Anything", "Playboy TV", "", "adult"),
    ("Lady Chatterley", "ARTE", "Drama/Romantik/Erotischer Film", None),
    ("Greystoke, la légende de Tarzan (?)", "Club RTL", "Film d'aventures/Magazine de télé-achat", None),
    ("Les reines du shopping", "Reines du shopping 24/24", "", None),
    ("Shopping Queen", "VOX", "Reality/Lifestyle", None),
    ("The Repair Shop", "BBC Two", "", None),
    ("Secrets of Playboy", "Crime+Investigation", "Dokumentation", None),
    ("xXx", "AMC", "Movies/Action", None),
    ("Sex and the City", "Paramount Network", "Film/Romantische Komedie", None),
    ("Rick and Morty", "Adult Swim", "Animation", None),
    ("Anything", "Private Sénat", "", None),
    ("Style", "Spice TV", "Lifestyle", None),
    ("Rookie Blue", "Rookie Blue", "", None),
]


@pytest.mark.parametrize(("title", "channel", "categories", "kind"), CASES)
def test_titles_that_are_omitted(title, channel, categories, kind):
    show_key = parse_title(title).show_key
    assert find_exclusion(title, show_key, channel, categories.split("/")) == kind


def test_an_option_includes_omitted_titles():
    rows = coming(("20:00", "21:00", "QVC", "Gems"), ("20:00", "21:00", "One", "No information"))
    assert group_programmes(rows) == []
    assert [show.show_key for show in group_programmes(rows, ["shopping"])] == ["gems"]
    assert [show.show_key for show in group_programmes(rows, ["placeholders"])] == ["no information"]
