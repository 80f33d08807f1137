"""Words of many scripts, and the kinds of tokens a title has."""

import unicodedata
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.tokenize.titles import parse_title
from tasks.tokenize.words import BIGRAM, EDGE, KINDS, MARK, NGRAM, RAW, SHAPE, WORD, Tokenizer, Words, WordsAndNgrams, split_words

TOKENIZERS = [pytest.param(kind(), id=kind.__name__) for kind in get_args(Tokenizer)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Grey's Anatomy", ["grey's", "anatomy"]),
        ("Ocean’s Twelve", ["ocean's", "twelve"]),  # the typographic apostrophe is the plain one
        ("Sid Roth´s It´s Supernatural!", ["sid", "roth's", "it's", "supernatural"]),
        ("L'Eredità", ["l'eredità"]),
        ("MORNIN’", ["mornin"]),
        ("Rock 'n' Roll", ["rock", "n", "roll"]),
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
        ("Ησαΐα", ["ησα\u03b9\u0308\u0301α"]),
        ("日本語講座", ["日本", "語講", "座"]),  # by pairs: the script has no spaces
        ("NHKニュース7", ["nhk", "ニュ", "ース", "7"]),
        ("한국기행", ["한국기행"]),
        ("क्राइम पेट्रोल", ["क्राइम", "पेट्रोल"]),
        ("தமிழ் செய்திகள்", ["தமிழ்", "செய்திகள்"]),
        ("ข่าวเช้า", ["ข่าวเช้า"]),
        ("חדשות הערב", ["חדשות", "הערב"]),
        ("نشرة الأخبار", ["نشرة", "الأخبار"]),
        ("", []),
        (". . .", []),
    ],
)
def test_words(text: str, words: list[str]):
    assert split_words(text) == words


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=40), st.text(alphabet="abPdDoO8:;=-)(/#@'’´` é日ニक्षี🎬_7", max_size=25)))
@example("a:p")
@example("8)")
@example(":op")
def test_no_letter_is_lost(text: str):
    folded = unicodedata.normalize("NFKC", text.replace("´", "'")).casefold()
    assert [character for character in folded if character.isalnum()] == [character for word in split_words(text) for character in word if character.isalnum()]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_words_are_their_own_words(text: str):
    for word in split_words(text):
        assert word == word.casefold() and not any(character.isspace() for character in word)


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
    assert [KINDS[kind] for kind, _ in tokens] == sorted((KINDS[kind] for kind, _ in tokens), key=KINDS.index)  # a fixed order


@pytest.mark.parametrize(("low", "high", "grams"), [(3, 5, ["<ab", "ab>", "<ab>"]), (3, 2, []), (1, 1, ["<", "a", "b", ">"]), (5, 9, [])])
def test_ngram_lengths(low: int, high: int, grams: list[str]):
    assert of_kind(WordsAndNgrams(shortest_ngram=low, longest_ngram=high).tokens("ab"), NGRAM) == grams


def test_duplicates_are_kept():
    assert of_kind(WordsAndNgrams().tokens("Pim Pam Pim"), WORD) == ["pim", "pam", "pim"]


def test_shape_says_what_letters_look_like():
    shapes = {raw: of_kind(WordsAndNgrams().tokens(raw), SHAPE)[-1] for raw in ("iCarly", "CSI: NY", "20/20", "a b c d e f g h", "Été")}
    assert shapes == {"iCarly": "shape:x", "CSI: NY": "shape:A:A", "20/20": "shape:9/9", "a b c d e f g h": "shape:xxxxxx", "Été": "shape:X"}


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("raw", ["", ".", "🎬", "(888)", "日本語"])
def test_odd_titles_have_tokens_or_none_but_never_fail(tokenizer: Tokenizer, raw: str):
    assert all(text and kind in range(len(KINDS)) for kind, text in tokenizer.tokens(raw))


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(max_examples=100, deadline=None)
@given(raw=st.text(max_size=40))
def test_the_same_title_gives_the_same_tokens(tokenizer: Tokenizer, raw: str):
    assert tokenizer.tokens(raw) == tokenizer.tokens(raw)
    assert [text for kind, text in tokenizer.tokens(raw) if kind == WORD] == split_words(parse_title(raw).display)


def test_words_alone_are_words_and_marks():
    assert Words().tokens("Rote Rosen (888)") == [(WORD, "rote"), (WORD, "rosen"), (MARK, "<episode>")]
