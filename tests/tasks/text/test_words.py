"""Words of many scripts, and the kinds of tokens."""

import itertools
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.text.splitting import _WORDS, fold, split_words
from tasks.text.words import BIGRAM, EDGE, KINDS, MARK, NGRAM, RAW, SHAPE, WORD, Words, WordsAndNgrams


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Grey's Anatomy", ["grey's", "anatomy"]),
        ("Ocean’s Twelve", ["ocean's", "twelve"]),  # the typographic apostrophe is the plain one
        ("Sid Roth´s It´s Supernatural!", ["sid", "roth's", "it's", "supernatural"]),
        ("L'Eredità", ["l", "eredità"]),  # an article elided before a word is a word of its own
        ("L’amour d'une femme", ["l", "amour", "d", "une", "femme"]),
        ("Dell'arte Qu'est-ce", ["dell", "arte", "qu", "est", "ce"]),
        ("O'Brien & D'Arcy", ["o'brien", "d", "arcy"]),
        ("MORNIN’", ["mornin"]),
        ("Rock 'n' Roll", ["rock", "n", "roll"]),
        ("Rock'n'Roll", ["rock", "n", "roll"]),
        ("Rock’n’Roll", ["rock", "n", "roll"]),
        ("Mögen sie ruh'n", ["mögen", "sie", "ruh'n"]),
        ("Spider-Man", ["spider", "man"]),
        ("AC/DC", ["ac", "dc"]),
        ("#mitHerz - das Magazin", ["#mitherz", "das", "magazin"]),
        ("Clips #LikeMe @BBC_One", ["clips", "#likeme", "@bbc_one"]),
        ("🎬 Film-Nacht 🍿", ["🎬", "film", "nacht", "🍿"]),
        ("★ Star ★", ["★", "star", "★"]),
        ("Smile :) ;-) :D", ["smile", ":)", ";-)", ":d"]),
        ("CSI:Paris", ["csi", "paris"]),  # the P is no tongue
        ("Tatort:Die Pfalz", ["tatort", "die", "pfalz"]),
        ("20/20", ["20", "20"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("ＮＨＫ２４", ["nhk24"]),
        ("Љубав и Освета", ["љубав", "и", "освета"]),
        ("Ησαΐα", ["ησαΐα"]),
        ("日本語講座", ["日本", "本語", "語講", "講座"]),  # by pairs: the script has no spaces
        ("NHKニュース7", ["nhk", "ニュ", "ュー", "ース", "7"]),
        ("男はつらいよ 語", ["男は", "はつ", "つら", "らい", "いよ", "語"]),
        ("한국기행", ["한국기행"]),
        ("क्राइम पेट्रोल", ["क्राइम", "पेट्रोल"]),
        ("தமிழ் செய்திகள்", ["தமிழ்", "செய்திகள்"]),
        ("ข่าวเช้า", ["ข่าว", "วเช้า"]),  # by pairs of syllables; vowels stay with their consonant
        ("ข่าวเย็น 7HD", ["ข่าว", "วเย็", "เย็น", "7hd"]),
        ("ข่าวเที่ยง๗", ["ข่าว", "วเที่", "เที่ย", "ยง", "๗"]),
        ("ข่าว", ["ข่าว"]),  # two syllables are one pair
        ("ຂ່າວເຊົ້າ", ["ຂ່າວ", "ວເຊົ້າ"]),  # Lao
        ("မြန်မာ့သတင်း", ["မြန်", "န်မာ့", "မာ့သ", "သတ", "တင်း"]),  # Burmese
        (
            "ព័ត៌មានថ្ងៃនេះ",
            ["ព័ត៌", "ត៌មា", "មាន", "នថ្ងៃ", "ថ្ងៃនេះ"],
        ),  # Khmer: the letter below stays with the one above
        ("חדשות הערב", ["חדשות", "הערב"]),
        ("نشرة الأخبار", ["نشرة", "الأخبار"]),
        ('דו"ח צה״ל', ['דו"ח', 'צה"ל']),  # abbreviations
        ("ג'ירפה", ["ג'ירפה"]),
        ("מַלְכָּה", ["מַלְכָּה"]),  # vowel points
        ("حَلَقَة", ["حَلَقَة"]),
        ("می\u200cشود", ["می\u200cشود"]),  # Persian's narrow break is within the word
        ("क्\u200dषण सत्यमेव।", ["क्\u200dषण", "सत्यमेव"]),
        ("សួស្តី བོད་", ["សួស្តី", "བོད"]),  # Khmer, Tibetan
        (
            "👍🏽 👩\u200d🚀 🏳\ufe0f\u200d🌈",
            ["👍🏽", "👩\u200d🚀", "🏳\u200d🌈"],
        ),  # skin tones and joined ones whole
        (
            "🇩🇪🇫🇷 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            ["🇩🇪", "🇫🇷", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"],
        ),
        ("I ❤\ufe0f NY <3 :'(", ["i", "❤", "ny", "<3", ":'("]),
        ("http://ard.de", ["http", "ard", "de"]),  # no face
        ("#ÇokGüzel @Kanal_D", ["#çokgüzel", "@kanal_d"]),
        ("", []),
        (". . .", []),
    ],
)
def test_words(text: str, words: list[str]):
    assert split_words(text) == words


TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(
        alphabet="abPdDoOnN8:;=-)(/#@'’´`<3\" é日本ニक्षीŉאב״🎬👍🏽🇩\u200d\ufe0f_7ΐςﬁขเาำ่๗្សម္", max_size=25
    ),
)


@settings(max_examples=200)
@given(TEXTS)
@example("a:p")
@example("8)")
@example(":op")
def test_no_letter_is_lost(text: str):
    """In their order; the second letter of a pair is the first of the next."""
    letters = iter(character for word in split_words(text) for character in word if character.isalnum())
    expected = [character for character in fold(text) if character.isalnum()]
    assert all(character in letters for character in expected), (
        "a letter of the text is in no word, or out of its place"
    )


@settings(max_examples=200)
@given(TEXTS)
@example("l'n'b")
@example("'n'")
def test_splitting_is_idempotent(text: str):
    words = split_words(text)
    assert split_words(" ".join(words)) == words
    assert not any(character.isspace() for word in words for character in word)


@settings(max_examples=300)
@given(st.text(alphabet='abPdDoO18-)(/\\\\ &.!_"', max_size=25))
@example("geht nicht")
@example("x 8) (8")
def test_the_fast_path_for_ascii_equals_the_regular_expression(text: str):
    """Text without the signs of words that are not runs of letters and digits, which takes the long way."""
    assert split_words(text) == _WORDS.findall(fold(text))


def test_two_thai_titles_of_one_kind_share_words():
    morning, evening, drama = (set(split_words(text)) for text in ("ข่าวเช้าวันนี้", "ข่าวเย็นวันนี้", "ละครหลังข่าว"))
    assert {"ข่าว", "วัน", "นนี้"} <= morning & evening and "ข่าว" in drama


def test_every_combining_mark_stays_with_its_letter():
    marks = [
        chr(point)
        for point in range(0x300, 0x1F000)
        if unicodedata.category(chr(point))[0] == "M" and not 0xFE00 <= point <= 0xFE0F
    ]
    assert len(marks) > 2000
    for mark in marks:
        assert len(split_words(f"ab{mark}cd")) == 1, f"U+{ord(mark):04X} parts a word"


def of_kind(tokens: list[tuple[int, str]], kind: int) -> list[str]:
    return [text for its, text in tokens if its == kind]


def test_every_kind_of_a_title():
    tokens = WordsAndNgrams(shortest_ngram=3, longest_ngram=4).tokens("Die NEUE Maus: Folge 12")
    assert of_kind(tokens, WORD) == ["die", "neue", "maus"]
    assert of_kind(tokens, BIGRAM) == ["die neue", "neue maus"]
    assert of_kind(tokens, NGRAM)[:5] == ["<di", "die", "ie>", "<die", "die>"]
    assert len(of_kind(tokens, NGRAM)) == 5 + 2 * (4 + 3)
    assert of_kind(tokens, EDGE) == ["^die", "maus$"]
    assert of_kind(tokens, SHAPE) == ["len:3", "chars:3", "shape:XAX"]
    assert of_kind(tokens, RAW) == ["raw:Die", "raw:NEUE", "raw:Maus"]
    assert of_kind(tokens, MARK) == ["<episode>"]
    order = [kind for kind, _ in itertools.groupby(KINDS[kind] for kind, _ in tokens)]
    assert order == ["word", "bigram", "ngram", "edge", "shape", "raw", "mark"]


@pytest.mark.parametrize(
    ("low", "high", "grams"),
    [(3, 5, ["<ab", "ab>", "<ab>"]), (3, 2, []), (1, 1, ["<", "a", "b", ">"]), (5, 9, [])],
)
def test_ngram_lengths(low: int, high: int, grams: list[str]):
    assert of_kind(WordsAndNgrams(shortest_ngram=low, longest_ngram=high).tokens("ab"), NGRAM) == grams


def test_repeated_words_are_repeated_tokens():
    assert of_kind(WordsAndNgrams().tokens("Pim Pam Pim"), WORD) == ["pim", "pam", "pim"]


def test_shape_describes_letters_and_digits():
    shapes = {
        raw: of_kind(WordsAndNgrams().tokens(raw), SHAPE)[-1]
        for raw in ("iCarly", "CSI: NY", "20/20", "a b c d e f g h", "Été")
    }
    assert shapes == {
        "iCarly": "shape:x",
        "CSI: NY": "shape:A:A",
        "20/20": "shape:9/9",
        "a b c d e f g h": "shape:xxxxxx",
        "Été": "shape:X",
    }


def test_words_alone_are_words_and_marks():
    assert Words().tokens("Rote Rosen (888)") == [(WORD, "rote"), (WORD, "rosen"), (MARK, "<episode>")]
