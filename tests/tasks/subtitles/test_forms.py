"""The forms of sub-titles that patterns require."""

import pytest

from tasks.subtitles.forms import has_form
from tasks.subtitles.rules import PLAIN

HELD = {
    "date": ("05:26", "6:00 PM-7:00 PM", "29 de março", "Emission du 19 févr. 2023", "2025-03-31 17:30"),
    "teams": ("Miami Heat at Utah Jazz", "NBA: Suns @ Timberwolves", "Länderspiel: Ungarn - Malta (M)"),
    "competition": ("PGA Tour - Houston Open", "Ungarn-Rundfahrt 2022, 1. Etappe", "Junior-DM: finále"),
    "segments": ("Snow No/ Plumb Crazy", "Mofongo on the Go; Alma Scoots Around", "Yoga ----- Lügen"),
    "part": ("La caída, parte 2", "Den siste skyggen – del 2", "Familie (2) - Der Haufen", "Prima Parte"),
    "episode_number": ("Episodio 13", "12. 'Bedste venner'", "26) Nidhug", "1/50: People", "187. rész"),
    PLAIN: ("Oldsmobile 88", "", "?"),
}
WITHHELD = {
    "date": ("Numeros 5:9 - 7:16", "8) 15 hunde på 20 kvm", "Kaliber 7.65", "1925 - 1933"),
    "teams": (
        "Nachtwölfe – Russlands größter Motorrad-Club",
        "Großer Preis von Spanien 2022 - Highlights aus Barcelona",
        "Madeira - Portugals Blütenmeer im Atlantik",
        "Grand Prix Finale - Vienna Open",
        "Bargain x And x Deal",
    ),
    "competition": ("Ford Mustang Mach 1", "Fußball 3. Liga, Braunschweig - Köln", "World Cup: Fiji v Samoa"),
    "segments": ("Stacey Dash; Jack McBrayer", "Edelsteinfasser/-in", "AC/DC", "Plain"),
    "part": ("Newark 19", "Der Tote in Zimmer 4", "Yugi contra Pegasus: Parte 1"),
    "episode_number": ("Oldsmobile 88", "BB2025 - Direto", "14. Etappe", "Apollo 11", "2026: Dubai"),
}


@pytest.mark.parametrize("pattern", HELD)
def test_sub_titles_have_the_form_of_their_pattern(pattern):
    assert {text: has_form(text, pattern) for text in HELD[pattern]} == dict.fromkeys(HELD[pattern], True)


@pytest.mark.parametrize("pattern", WITHHELD)
def test_sub_titles_without_the_form_of_a_pattern_are_withheld(pattern):
    assert [text for text in WITHHELD[pattern] if has_form(text, pattern)] == []
