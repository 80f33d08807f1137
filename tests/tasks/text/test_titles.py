"""Raw titles to show keys and marks: every quirk of real guides, with titles as guides have them."""

import pytest

from tasks.text.titles import clean_text, is_placeholder, parse_title
from tests.tasks.text.plain_titles import CLEANED, NAMES


@pytest.mark.parametrize("raw", NAMES)
def test_text_that_only_looks_like_a_mark_stays(raw: str):
    title = parse_title(raw)
    assert title.display == raw and title.marks == ()


@pytest.mark.parametrize(("raw", "clean"), CLEANED)
def test_text_is_cleaned(raw: str, clean: str):
    assert clean_text(raw) == clean


@pytest.mark.parametrize(
    ("raw", "display", "key"),
    [
        ("And Just Like That...", "And Just Like That", "and just like that"),
        ("ＮＥＷＳ２４", "ＮＥＷＳ２４", "news24"),  # full-width letters and digits
        ("★ Star Trek ★", "★ Star Trek ★", "star trek"),
        ("🎬", "🎬", "🎬"),
        ("MASCHIO SELVAGGIO", "MASCHIO SELVAGGIO", "maschio selvaggio"),
        ("Grey's Anatomy", "Grey's Anatomy", "grey s anatomy"),
        (
            "Ησαΐα Χόρευε",
            "Ησαΐα Χόρευε",
            "ησα\u03b9\u0308\u0301α χόρευε",
        ),  # case folding takes ΐ apart; it stays one word
        ("क्राइम पेट्रोल", "क्राइम पेट्रोल", "क्राइम पेट्रोल"),  # vowel signs are no word breaks
        ("ข่าวเช้า", "ข่าวเช้า", "ข่าวเช้า"),
    ],
)
def test_display_and_key(raw: str, display: str, key: str):
    title = parse_title(raw)
    assert (title.display, title.show_key) == (display, key)


def test_four_languages_in_one_title_are_four_scripts_of_words():
    """A guide that glues its languages together; each keeps its words, the marks of each go."""
    title = parse_title("Новости / News / חדשות / الأخبار (повтор)")
    assert title.show_key == "новости news חדשות الأخبار" and title.marks == ("<repeat>",)


def test_a_title_longer_than_400_characters_is_one_key():
    raw = "Un documentaire sur la vie des animaux de la forêt et de la montagne. " * 6 + "(Rediffusion)"
    title = parse_title(raw)
    assert len(raw) > 400 and title.marks == ("<repeat>",)
    assert title.show_key.count("documentaire") == 6 and title.display.endswith("de la montagne")


def test_a_title_cut_by_its_guide_is_the_title():
    assert (
        parse_title("Die Rosenheim-Cops...").show_key
        == parse_title("Die Rosenheim-Cops…").show_key
        == parse_title("Die Rosenheim-Cops").show_key
    )


def test_vowel_signs_distinguish_shows():
    assert parse_title("दिल").show_key != parse_title("दल").show_key


@pytest.mark.parametrize(
    "raw", ["Ep. 23", "Ep.33", "S3 Ep. 137", "(888)", "New: ", "(Wdh.)", "פרק 10", "Сезон 8. 13-я серия"]
)
def test_marks_alone_keep_their_text(raw: str):
    title = parse_title(raw)
    assert title.display == raw.strip() or title.display == raw.strip(" :")
    assert title.show_key and title.marks == ()


@pytest.mark.parametrize("raw", ["", ".", "-", ". . . . .", "\u200b"])
def test_titles_without_letters_are_placeholders(raw: str):
    assert is_placeholder(parse_title(raw).show_key)


@pytest.mark.parametrize(
    "raw",
    [
        "No information",
        "No Information Available",
        "Paid Programming",
        "Teleshopping",
        "Teleshopping: Drew&Cole...",
        "Sem Informação",
        "Home Shopping",
        "Infomercial",
        "Sendeschluss",
        "TBA",
        "Τηλεπωλήσεις",
        "Téléshopping",
        "No Data Available",
        "No EPG",
        "No EPG available",
        "No listing available",
        "..programmes start at 6.00am",
        "Keine Daten verfügbar",
        "Aucune donnée disponible",
        "Pas d'EPG",
        "Nessun dato disponibile",
        "Sem dados",
        "Informação Não Disponibilizada Pelo Canal",
        "Sin información",
        "Geen gegevens beschikbaar",
        "Ingen data tilgængelige",
        "Ingen programinformasjon",
        "Information saknas",
        "Ei tietoja",
        "Žiadne údaje",
        "Nočné vysielanie",
        "Žádné informace",
        "Závěr vysílání",
        "Nincs adat",
        "Brak danych",
        "Brak informacji o programie",
        "Δεν υπάρχουν διαθέσιμες πληροφορίες",
        "[K8] Τηλεαγορές",
        "Нет данных",
        "Профилактика на канале",
    ],
)
def test_placeholders_are_known(raw: str):
    assert is_placeholder(parse_title(raw).show_key)


@pytest.mark.parametrize(
    "raw",
    [
        "No Offence",
        "Shopping Queen",
        "Information",
        "The Shop",
        "Paid in Full",
        "Data",
        "No Sudden Move",
        "Ei saa peittää",
        "Kein Pardon",
        "Sin City",
        "Sin tetas no hay paraíso",
        "Sem Lei",
        "Nessuno è perfetto",
        "Ingen kan lykkeligere være",
        "Brakk",
        "Den korte pause",
        "Pause to Pray",
        "Informação Privilegiada",
        "Noční vlak",
        "Нет дороги назад",
    ],
)
def test_shows_are_no_placeholders(raw: str):
    assert not is_placeholder(parse_title(raw).show_key)


@pytest.mark.parametrize(
    ("raw", "family"),
    [
        ("CSI: Miami", "csi"),
        ("CSI: NY (4/6)", "csi"),
        ("The Big Bang Theory", "big"),
        ("Die Sendung mit der Maus", "sendung"),
        ("The The", "the"),
        ("", ""),
    ],
)
def test_family_is_the_first_content_word(raw: str, family: str):
    assert parse_title(raw).family == family
