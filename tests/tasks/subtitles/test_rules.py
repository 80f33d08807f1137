"""The rules of patterns in several languages."""

import pytest

from tasks.subtitles.cues import Cues
from tasks.subtitles.rules import PATTERNS, PLAIN, collapse_spaces, first_names, match_rule, places

LABELLED = {
    "date": ("vom 27.05.2022, 14:00 Uhr", "Friday 21 August 2026,", "du 3 décembre", "July 18, 2017 - Larry"),
    "teams": ("Geelong v Richmond", "Real Madrid vs. CD Leganés", "Round 14: Sharks vs Leinster Rugby"),
    "competition": (
        "28. Runde, Highlights",
        "26e journée",
        "Matchday 31",
        "Les demi-finales",
        "Weltcup, Seoul",
    ),
    "segments": (
        "Hex of a dancer // The two magicians",
        "Podlings / Dumpster Dining",
        "Kdo se směje/Plody",
    ),
    "part": (
        "Abrechnung - Teil 2",
        "Best Of - Partie 1",
        "The Job - Part 1",
        "Lauras Eifersucht (2)",
        "Part IV",
        "Pt.2",
    ),
    "episode_number": ("Folge 1843", "Épisode 66", "Episode 9", "S6 E2 - La fine équipe", "#217", "503"),
    "guests": ("Gäste: Anna Loos & Peter Maffay", "Maya Rudolph; Michael Gandolfini", "Christoph Daum"),
    "place": ("Neuseeland", "Londonderry, Ireland", "Brighton to Crystal Palace", "Bretagne"),
    PLAIN: ("Der letzte Romeo", "The Skull", "Le projet Requiem !", "Warum sterben die Insekten?"),
}
UNKNOWN = ("Kapitola 12", "Bayern München-St. Pauli", "Viterbo", "Parte 2", "Skandal", "", "29 de março")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_plain_cases_of_each_pattern_are_labelled(pattern):
    assert {text: match_rule(text) for text in LABELLED[pattern]} == dict.fromkeys(LABELLED[pattern], pattern)


def test_there_are_seven_to_ten_patterns_and_rules_abstain_elsewhere():
    assert 7 <= len(PATTERNS) <= 10 and set(PATTERNS) == set(LABELLED)
    assert [match_rule(text) for text in UNKNOWN] == [None] * len(UNKNOWN)


def test_words_that_begin_with_part_are_no_part():
    assert "part" not in map(match_rule, ("Le Parti", "Il est parti", "Die Partei", "Teilx"))


def test_the_first_rule_that_holds_decides():
    assert match_rule("Round 4 Rabbitohs v Panthers") == "teams"
    assert match_rule("Langue (2) / Hong-Kong (1)") == "segments"


def test_white_space_and_its_escapes_are_one_space():
    assert collapse_spaces("09:00 am,\\n Monday\n  March 31 ") == "09:00 am, Monday March 31"


def test_lists_hold_names_alone():
    assert {"Anna", "Lyon"} - first_names() == {"Lyon"}
    assert "São Paulo" in places() and "" not in places() and "" not in first_names()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_cues_are_hidden_by_chance_alone(pattern):
    texts = [text for text in LABELLED[pattern] for _ in range(40)]
    words = ["ørken", "Dům", "nights"]
    once, again = ([cues.hide(text, pattern) for text in texts] for cues in (Cues(words, 1), Cues(words, 1)))
    assert once == again and all(once) and set(once) - set(texts)
    assert sum(match_rule(text) == pattern for text in once) < len(once)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_sub_title_of_a_sign_or_two_survives(pattern):
    assert all(Cues([], 0).hide(text, pattern) for text in ("?", "a", "1", "A/B", "- -") for _ in range(20))
