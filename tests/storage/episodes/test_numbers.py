"""Episode numbers as guides write them, and texts that only resemble them."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from storage.episodes.numbers import EpisodeNumber, fold_sub_title, read_episode, read_numbers

ONSCREEN = [
    ("S01E02", 1, 2, None),
    ("s1 ep2", 1, 2, None),
    ("S01E02-E03", 1, 2, None),
    ("S01E02E03", 1, 2, None),
    ("S1 – Ep. 12-13", 1, 12, None),
    ("S3 E4 P1", 3, 4, 1),
    ("T24E25", 24, 25, None),
    ("S20242025 E8", 20242025, 8, None),
    ("S2025E12", 2025, 12, None),
    ("1x02", 1, 2, None),
    ("2x112205", 2, 112205, None),
    ("E112205", None, 112205, None),
    ("Ep 3 Part 2", None, 3, 2),
    ("4/6, series 3", 3, 4, None),
    ("505", None, 505, None),
    ("(4/6)", None, 4, None),
    ("#12", None, 12, None),
    ("0.1.", 1, 2, None),
    ("-1.3.", None, 4, None),
    ("S00E05", 0, 5, None),
    ("S1 E0", 1, None, None),
    ("S35", 35, None, None),
]
LANGUAGES = {
    "en": [("Series 3, 4/6", 3, 4), ("Season 3 Episode 14", 3, 14), ("Episode 6 of Season 5", 5, 6)],
    "de": [("2. Staffel, Folge 7", 2, 7), ("Staffel 3, Folge 12", 3, 12), ("Folge 2630", None, 2630)],
    "fr": [("Saison 2 - Épisode 11/24", 2, 11), ("2e saison, épisode 3", 2, 3)],
    "es": [("Temporada 4 Capítulo 8", 4, 8), ("Cap. 45", None, 45), ("T3 Ep. 4", 3, 4)],
    "pt": [("2ª temporada, Episódio 110", 2, 110)],
    "it": [("Stag. 1 Ep. 44", 1, 44), ("Stagione 2, puntata 3", 2, 3), ("St. 4 Ep. 12", 4, 12)],
    "nl": [("Seizoen 3 Aflevering 9", 3, 9), ("Afl. 18005 (S18E18005)", 18, 18005)],
    "da": [("Sæson 2, afsnit 15", 2, 15), ("Del 4/5", None, 4)],
    "nb": [("Sesong 7, episode 3 av 8", 7, 3)],
    "sv": [("Säsong 4 avsnitt 6 av 10", 4, 6), ("Del 13 säsong 2011", None, 13), ("Del 13", None, 13)],
    "fi": [("Kausi 2. Jakso 5/10.", 2, 5), ("Osa 3", None, 3)],
    "pl": [("Sezon 3, odcinek 7", 3, 7), ("odc. 1853", None, 1853)],
    "cs": [("2. série, 14. díl", 2, 14)],
    "sk": [("3. séria, 2. diel", 3, 2)],
    "hu": [("2. évad 14. rész", 2, 14)],
    "ro": [("Sezonul 2, Episodul 5", 2, 5)],
    "hr": [("2. sezona, 5. epizoda", 2, 5)],
    "tr": [("2. Sezon 13. Bölüm", 2, 13)],
    "el": [("2ος κύκλος", 2, None), ("Κ6 Επ. 3", 6, 3), ("Επεισόδιο 114", None, 114)],
    "ru": [("Сезон 2 Серия 5", 2, 5), ("Сезон 8. 13-я серия", 8, 13), ("3-й сезон, 4 серия", 3, 4)],
    "uk": [("Сезон 2, серія 6", 2, 6)],
    "bg": [("Сезон 2, епизод 6", 2, 6)],
    "he": [("עונה 2 פרק 10", 2, 10)],
    "ar": [("الموسم 2 الحلقة 10", 2, 10)],
    "hi": [("सीज़न 2 एपिसोड 4", 2, 4)],
    "ja": [("第5話", None, 5), ("シーズン2 第5話", 2, 5), ("第2期 第11回", 2, 11)],
    "zh": [("第2季第5集", 2, 5)],
    "ko": [("시즌 2 5회", 2, 5)],
    "th": [("ตอนที่ 5", None, 5)],
}
NONE = [
    ("tmdb", "12345"),
    ("themoviedb.org", "1981"),
    ("thetvdb", "series/81189"),
    ("tvdb", "E81189"),
    ("TMS", "EP012345670004"),
    ("gracenote", "SH012345670000"),
    ("bsepg-epid", "4711"),
    ("DD_ProgId", "EP01234567.0012"),
    ("original-air-date", "2025/03/01"),
    ("show", "show/S3535-744"),
    ("series", "SH09123312"),
    ("pluto", "65e1f2025c25f6001343e66a"),
    ("xmltv_ns", "2029.10.12"),
    ("xmltv_ns", "x.y.z"),
    ("xmltv_ns", "2.."),
    *(
        ("onscreen", text)
        for text in (
            "EP012345670004", "ep01234567.0012", "E0", "E00", "2025", "(2024)", "2029.10.12", "2025-03-01",
            "31.12.2025", "Formula E 2025", "Wednesday", "show/S3535-744",
            "5e1f0000-4e51-4e51-9999-123456789012", "E99999999999", "EP1.5", "20:15", "",
        )
    ),
    (None, "e3b0c442-98fc-1c14-9afb-4c8996fb9242"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "season", "episode", "part"), ONSCREEN)
def test_on_screen(text: str, season: int | None, episode: int | None, part: int | None) -> None:
    for system in ("onscreen", "", None):
        number = read_numbers(((system, text),))
        assert (number.season, number.episode, number.part) == (season, episode, part)


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(language: str) -> None:
    for text, season, episode in LANGUAGES[language]:
        number = read_numbers((("onscreen", text),))
        assert (number.season, number.episode, number.part) == (season, episode, None), text


@pytest.mark.parametrize(("system", "text"), NONE)
def test_texts_without_an_episode_number(system: str | None, text: str) -> None:
    for spelled in (system, system and system.upper()):
        assert read_numbers(((spelled, text),)).episode is None


@pytest.mark.parametrize(
    ("numbers", "number"),
    [
        ([("season", "1"), ("Episode", "14"), ("series", "SH09123312")], EpisodeNumber(season=1, episode=14)),
        (
            [("dd_progid", "EP1.0005"), ("xmltv_ns", " 0 . 11/24 . 0/2 ")],
            EpisodeNumber(1, None, 12, 24, 1, 2),
        ),
        ([("onscreen", "S2 E6"), ("xmltv_ns", ".5.")], EpisodeNumber(season=2, episode=6)),
        ([("onscreen", "S2 E7"), ("XMLTV-NS", ".5.")], EpisodeNumber(episode=6)),
        ([("xmltv_ns", "-1.4/-1.0/2")], EpisodeNumber(episode=5, part=1, parts=2)),
        ([("xmltv_ns", "99999999999.1.")], EpisodeNumber(episode=2)),
        ([("tvdb", "S01E02")], EpisodeNumber(season=1, episode=2)),
        ([("onscreen", "S1 E12/20")], EpisodeNumber(season=1, episode=12, episodes=20)),
        ([], EpisodeNumber()),
    ],
)
def test_several_elements_are_one_number(numbers: list[tuple[str, str]], number: EpisodeNumber) -> None:
    assert read_episode(numbers) == read_episode(reversed(numbers)) == number


@pytest.mark.parametrize(
    ("numbers", "title", "sub_title", "keys"),
    [
        ([], "Pokémon Journeys S7 Ep. 16", "Episode 16", ("s7e16", "")),
        ([], "Pyramide Stag. 5 Ep. 17", "", ("s5e17", "")),
        ([], "Inspector", "Folge 12", ("e12", "")),
        ([], "Rote Rosen (888)", None, ("e888", "")),
        ([], "Der Mond (3/5)", "The Sea", ("e3", "thesea")),
        ([], "Nyheder - Del 4/5", "", ("e4", "")),
        ([], "Vera", "S2 E39 - Copains", ("s2e39", "copains")),
        ([], "Vera", "26) Ragna-Rock", ("e26", "ragnarock")),
        ([], "Vera", "4/6", ("e4", "")),
        ([("", "S2 E4")], "Vera", "Episode 9", ("s2e4", "")),
        ([("", "S2")], "Vera", "Episode 9", ("s2e9", "")),
        ([("", "E5")], "Vera", "Sand: Part 1", ("e5", "sandpart1")),
        ([], "The Shell Seekers, Teil 2", "", ("p2", "")),
        ([], "Vera", "Sand: Part 2", ("", "sandpart2")),
        ([("xmltv_ns", "0.1.1/2")], "Vera", "", ("s1e2p2", "")),
        ([("xmltv_ns", "0.1.0/1")], "Vera", "", ("s1e2", "")),
    ],
)  # fmt: skip
def test_titles_and_sub_titles_are_parsed_if_numbers_lack_the_episode(
    numbers: list[tuple[str, str]], title: str, sub_title: str | None, keys: tuple[str, str]
) -> None:
    assert read_episode(numbers, title, sub_title).keys(sub_title) == keys


@pytest.mark.parametrize(
    "title",
    ["Formula E 2025", "Babylon 5", "20/20", "4x4", "Basketball 3x3", "AFL 360",
     "The 39 Steps", "E3 Saxo Classic", "Footloose (1984)",
     "PL: Goals (24/25)", "4x10 km", "Apollo 11", "10 Steps to Love", "7.30",
     "Part of Me 2", "Live 12.3.2025", "Moto3: Race 2"],
)  # fmt: skip
def test_titles_whose_numbers_count_no_episodes(title: str) -> None:
    assert read_episode([], title).key == ""
    assert read_episode([], None, title).key == "" or title == "20/20"


@pytest.mark.parametrize(
    ("sub_title", "folded"),
    [("The Killings at Badger's Drift", "thekillingsatbadgersdrift"), ("Episode 4", ""), ("S2 E4", ""),
     ("Épisode 13", ""),
     ("3. Staffel, Folge 12", ""), (None, ""), ("4 Weddings", "4weddings"), ("1984", "1984")],
)  # fmt: skip
def test_a_sub_title_with_only_a_number_is_empty(sub_title: str | None, folded: str) -> None:
    assert fold_sub_title(sub_title) == folded


COUNT = st.none() | st.integers(1, 9999)


@given(st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT, COUNT), st.sampled_from(["", " "]))
def test_xmltv_ns_round_trips(numbers: tuple[int | None, ...], space: str) -> None:
    fields = []
    for number, total in zip(numbers[::2], numbers[1::2], strict=True):
        first = "" if number is None else str(number - 1)
        fields.append(f"{space}{first}{'' if total is None else f'{space}/{space}{total}'}{space}")
    text = ".".join(fields)
    assume(
        not re.fullmatch(r" ?(19|20)\d\d ?\. ?\d\d? ?\. ?\d\d? ?| ?\d\d? ?\. ?\d\d? ?\. ?(19|20)\d\d ?", text)
    )  # dates
    assert read_numbers((("xmltv_ns", text),)) == EpisodeNumber(*numbers)


@given(st.text(alphabet="sSeEpPxX0123456789./- ()#第話", max_size=20), st.text(max_size=20))
def test_any_text_is_read(text: str, other: str) -> None:
    for own in (text, other):
        number = read_episode([("onscreen", own), (own, own), ("season", own), ("xmltv_ns", own)], own, own)
        assert number.episode != 0 and number.part != 0
        assert all(value is None or 0 <= value < 2**31 for value in number)
        fold_sub_title(own)
