"""Raw titles to show keys and marks: every quirk of real guides, with titles as guides have them."""

import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.tokenize.placeholders import is_placeholder
from tasks.tokenize.titles import _MARKS, clean_text, parse_title

# raw title, display, marks
STRIPPED = [
    # episodes and seasons
    ("Neighbours S3 Ep. 137", "Neighbours", {"<season>"}),
    ("Rote Rosen (888)", "Rote Rosen", {"<episode>"}),
    ("Faszinierende Erde (4/6)", "Faszinierende Erde", {"<episode>"}),
    ("Oggy e i maledetti scarafaggi - Stag. 1 Ep. 44", "Oggy e i maledetti scarafaggi", {"<season>"}),
    ("O Rei do Gado (T24/25)", "O Rei do Gado", {"<season>"}),
    ("Game Two #707", "Game Two", {"<episode>"}),
    ("Nick Music - Del 1/2", "Nick Music", {"<part>"}),
    ("Die Fallers, Folge 12", "Die Fallers", {"<episode>"}),
    ("Lost Places - Folge 58", "Lost Places", {"<episode>"}),
    ("Секретные материалы. Сезон 8. 13-я серия", "Секретные материалы", {"<season>", "<episode>"}),
    ("החדשות פרק 10", "החדשות", {"<episode>"}),
    ("In Therapie - Staffel 1 (24/35)", "In Therapie", {"<season>", "<episode>"}),
    ("EuroLeague Originals: Rivalries : Επεισόδιο 4, Σερβία", "EuroLeague Originals: Rivalries, Σερβία", {"<episode>"}),
    ("Κεραία - Ε Κύκλος (E) [K8]", "Κεραία", {"<season>", "<repeat>", "<rating>"}),
    ("Ηλέκτρα - B Κύκλος [K8]", "Ηλέκτρα", {"<season>", "<rating>"}),  # the B is Latin, as the guide has it
    ("Takeda - Stag. 1 Ep. 7 - Pugliese", "Takeda - Pugliese", {"<season>"}),
    ("Murders That Shocked The Nation S3", "Murders That Shocked The Nation", {"<season>"}),
    ("Cook Smart S01", "Cook Smart", {"<season>"}),
    ("Kavalkade 2024 - EKKO (S8", "Kavalkade 2024 - EKKO", {"<season>"}),  # cut by the guide
    ("Il Caffè - Puntata del 30/03/2025", "Il Caffè", {"<episode>"}),
    ("Treasure Island - Teil 1", "Treasure Island", {"<part>"}),
    ("Tom Of Finland: Part 1", "Tom Of Finland", {"<part>"}),
    ("Escort N5 - Part 3 (HARD)", "Escort N5", {"<part>", "<rating>"}),
    # repeats, premieres, live
    ("Tagesschau (Wdh.)", "Tagesschau", {"<repeat>"}),
    ("Nyhederne fra TV2 Østjylland (Genudsendelse) - Del 3/4", "Nyhederne fra TV2 Østjylland", {"<repeat>", "<part>"}),
    ("Γεωργία (E)", "Γεωργία", {"<repeat>"}),
    ("Wonders of Turkey [R]", "Wonders of Turkey", {"<repeat>"}),
    ("New: Gladiators", "Gladiators", {"<new>"}),
    ("Gladiators ᴺᵉʷ", "Gladiators", {"<new>"}),
    ("Новини вільних народів (прем'єра)", "Новини вільних народів", {"<new>"}),
    ("Live: MLS Soccer", "MLS Soccer", {"<live>"}),
    ("Bundesliga 2024-25 - B. Munique x St. Pauli (Direto)", "Bundesliga 2024-25 - B. Munique x St. Pauli", {"<live>"}),
    # ratings, languages, years
    ("[K8] Brain (E)", "Brain", {"<rating>", "<repeat>"}),
    ("Doraemon 【普】", "Doraemon", {"<rating>"}),
    ("Polar Express (VP)", "Polar Express", {"<language>"}),
    ("King Kong (2005)", "King Kong", {"<year:2005>"}),
    ("Territoires de France (?)", "Territoires de France", {"<unsure>"}),
]


@pytest.mark.parametrize(("raw", "display", "marks"), STRIPPED)
def test_marks_are_taken_out_and_kept_as_tokens(raw: str, display: str, marks: set[str]):
    title = parse_title(raw)
    assert title.display == display
    assert set(title.marks) == marks


def test_every_airing_of_a_show_has_one_key():
    airings = ["Rote Rosen", "Rote Rosen (888)", "ROTE ROSEN (3586)", "Rote Rosen (Wdh.)", "Rote Rosen, Folge 12", "Rote  Rosen\u200b [R]", "Rote Rosen...", "New: Rote Rosen"]
    assert {parse_title(airing).show_key for airing in airings} == {"rote rosen"}


NAMES = [
    # numbers that are names
    *(
        "20/20",
        "1408",
        "24",
        "1917",
        "7.30",
        "42",
        "60 Minutes",
        "Babylon 5",
        "Studio 54",
        "Blade Runner 2049",
        "Beverly Hills, 90210",
        "Apollo 13",
        "Die nackte Kanone 33 1/3",
        "ICI 19/20 - Marseille",
    ),
    *(
        "Fast & Furious 8",
        "World Sailing Show 2025",
        "NASCAR Cup Series 2022",
        "Season 2024/2025",
        "EFL 24/25: Barrow v Chesterfield",
        "Life 24/7",
        "28 Days Later",
        "9-1-1",
        "Country #1 Hits",
    ),
    # words that look like marks
    *("Live at the Apollo", "New Amsterdam", "Serie A", "Part of Me", "Folge mir", "Teil des Ganzen", "Die Serie", "Del Boy", "Episode", "Live", "LIVE FROM DARYL'S HOUSE"),
    # brackets that are spelling or names
    *(
        "How (Not) to Get Rid of a Body",
        "Les engagé(e)s 2030",
        "Gletscherforschung - Ein heißes Eis(en)",
        "Rick and Morty [adult swim]",
        "[Rec]2",
        "Joker (Portugal)",
        "7s Inv (M): HKG v CHN",
    ),
]


@pytest.mark.parametrize("raw", NAMES)
def test_what_only_looks_like_a_mark_stays(raw: str):
    title = parse_title(raw)
    assert title.display == raw and title.marks == ()


CLEANED = [
    ("\\n\\t\\t\\t\\tΠρόγραμμα Ενηλίκων\\n", "Πρόγραμμα Ενηλίκων"),  # a backslash and a letter
    ("Das  Erste\n\tNachrichten\r\n", "Das Erste Nachrichten"),
    ("The\u200b \ufeffBill\u200e", "The Bill"),
    ("Caf\ufffd Europa", "Caf Europa"),
    ("CapÃ­tulo", "Capítulo"),
    ("Let\u00e2\u0080\u0099s Go Viral", "Let’s Go Viral"),
    ("MÃ¼nchen Mord", "München Mord"),
    ("Ð’ÐµÑ\u0081Ñ‚Ð¸", "Вести"),
    ("Veterinář ze Skalnatých hor", "Veterinář ze Skalnatých hor"),  # looks double-encoded, is Czech
    ("Puss hej da\u030a", "Puss hej då"),
    ("Ra\u0085dio\u0007", "Ra dio"),
    ('<img src="x.png" alt=""/> Nachrichten <b>heute</b>', "Nachrichten heute"),
    ("Tom &amp;amp; Jerry", "Tom & Jerry"),
    ("Apple &amp;amp;amp; Onion", "Apple & Onion"),
    ("5 < 6 > 4", "5 < 6 > 4"),
    ("I \u00ad Love\u00a0You", "I Love You"),
]


@pytest.mark.parametrize(("raw", "clean"), CLEANED)
def test_text_is_mended(raw: str, clean: str):
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
        ("Ησαΐα Χόρευε", "Ησαΐα Χόρευε", "ησα\u03b9\u0308\u0301α χόρευε"),  # case folding takes ΐ apart; it stays one word
        ("क्राइम पेट्रोल", "क्राइम पेट्रोल", "क्राइम पेट्रोल"),  # vowel signs are no word breaks
        ("ข่าวเช้า", "ข่าวเช้า", "ข่าวเช้า"),
    ],
)
def test_display_and_key(raw: str, display: str, key: str):
    title = parse_title(raw)
    assert (title.display, title.show_key) == (display, key)


def test_vowel_signs_tell_shows_apart():
    assert parse_title("दिल").show_key != parse_title("दल").show_key


@pytest.mark.parametrize("raw", ["Ep. 23", "Ep.33", "S3 Ep. 137", "(888)", "New: ", "(Wdh.)", "פרק 10", "Сезон 8. 13-я серия"])
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
    ],
)
def test_placeholders_are_known(raw: str):
    assert is_placeholder(parse_title(raw).show_key)


@pytest.mark.parametrize("raw", ["No Offence", "Shopping Queen", "Information", "The Shop", "Paid in Full"])
def test_shows_are_no_placeholders(raw: str):
    assert not is_placeholder(parse_title(raw).show_key)


@pytest.mark.parametrize(
    ("raw", "family"), [("CSI: Miami", "csi"), ("CSI: NY (4/6)", "csi"), ("The Big Bang Theory", "big"), ("Die Sendung mit der Maus", "sendung"), ("The The", "the"), ("", "")]
)
def test_family_is_the_first_content_word(raw: str, family: str):
    assert parse_title(raw).family == family


def test_long_titles_are_taken_apart_in_no_time():
    title = parse_title("Euronews Now. " * 200 + "(" * 300 + "Folge " * 200)
    assert title.show_key.startswith("euronews now euronews now")


FRAGMENTS = st.sampled_from(
    [raw for raw, _, _ in STRIPPED]
    + NAMES
    + [raw for raw, _ in CLEANED]
    + [
        "(",
        ")",
        "[",
        "]",
        "#",
        " - ",
        ": ",
        "&",
        "amp;",
        "<",
        ">",
        "b",
        "Ep. ",
        "S",
        "1",
        "20",
        "2001",
        "(2001)",
        "(R)",
        " Teil ",
        "New: ",
        "LIVE ",
        "é",
        "\u0301",
        "Ã",
        "\u00ad",
        ",",
        "/",
        "…",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.lists(FRAGMENTS, max_size=6).map("".join), st.text(max_size=40), st.text(alphabet=string.ascii_letters + string.digits + "()[]<>&;#:/-. ", max_size=30)))
@example("Title - Part 3 (2001)")
@example("Escort N5 - Part 3 (HARD)")
@example("&amp;lt;b&amp;gt;News")
def test_display_of_a_display_is_itself(raw: str):
    title = parse_title(raw)
    again = parse_title(title.display)
    assert again.display == title.display
    assert again.show_key == title.show_key
    assert clean_text(clean_text(raw)) == clean_text(raw)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.lists(FRAGMENTS, min_size=1, max_size=6).map("".join), st.text(max_size=40)))
def test_a_title_with_letters_is_never_empty(raw: str):
    title = parse_title(raw)
    if any(character.isalnum() for character in clean_text(raw)):
        assert any(character.isalnum() for character in title.show_key)
        assert title.display
    assert set(title.marks) <= {mark for mark in title.marks if re.fullmatch(r"<year:\d{4}>", mark)} | {f"<{kind}>" for kind, _ in _MARKS}
