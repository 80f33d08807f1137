"""The law of tokenizers: the same tokens alone and among many, after saving too; nothing lost; their own
output understood."""

import json
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.text.splitting import split_words
from tasks.text.subwords import Subwords, TrainedSubwords
from tasks.text.titles import parse_title
from tasks.text.tokenizers import (
    TOKENIZERS,
    FittedTokenizer,
    Tokenizer,
    describe_tokenizer,
    read_tokenizer,
    restore_tokenizer,
    write_tokenizer,
)
from tasks.text.words import KINDS, MARK, NGRAM, WORD
from tests.worlds import titles

TRAINING = [title for title, _ in titles()] + [
    "Tatort",
    "Tatort (4/6)",
    "Die Sendung mit der Maus",
    "日本語講座",
    "Ελλάδα σήμερα",
]
FITTED = [
    kind().fit(TRAINING) if kind is not Subwords else Subwords(pieces=300).fit(TRAINING)
    for kind in get_args(Tokenizer)
]
EVERY = pytest.mark.parametrize("tokenizer", FITTED, ids=lambda tokenizer: tokenizer.name)
RAWS = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from([*TRAINING, "(888)", "日本語", "क्षी", "👍🏽", "#x", "L'or", "Ქ", "ŉ", " - ", ":)"]),
        max_size=4,
    ).map(" ".join),
)


def pieces(learnt: TrainedSubwords, word: str) -> list[str]:
    return [piece for _, piece in learnt.tokens(word)]


def test_the_family_is_the_list():
    assert set(TOKENIZERS.values()) == set(get_args(Tokenizer)) and all(
        name == kind().name for name, kind in TOKENIZERS.items()
    )
    assert {type(tokenizer) for tokenizer in FITTED} == set(get_args(FittedTokenizer))


def spell(tokens: list[tuple[int, str]], name: str) -> str:
    """The text that tokens stand for, words apart: what a tokenizer of words sees again."""
    own = [
        text for kind, text in tokens if kind == (WORD if "words" in name and name != "subwords" else NGRAM)
    ]
    if name == "characters":
        return "".join(text for text in own if len(text) == 1).replace("_", " ")
    return "".join(own).replace("▁", " ") if name == "subwords" else " ".join(own)


@EVERY
@settings(max_examples=75, deadline=None)
@given(raw=RAWS)
@example(raw="Rote Rosen (888)")
def test_tokens_spell_the_words_of_the_title(tokenizer: FittedTokenizer, raw: str):
    """Nothing is lost, and tokens of the tokens are the tokens."""
    words = split_words(parse_title(raw).display)
    spelt = spell(tokenizer.tokens(raw), tokenizer.name)
    assert spelt.split() == words
    assert split_words(spelt) == words


@EVERY
@settings(max_examples=50, deadline=None)
@given(raws=st.lists(RAWS, max_size=8))
def test_many_titles_have_the_tokens_of_each(tokenizer: FittedTokenizer, raws: list[str]):
    assert tokenizer.all_tokens(raws) == [tokenizer.tokens(raw) for raw in raws]


@EVERY
def test_what_is_saved_tokenizes_alike(tokenizer: FittedTokenizer, tmp_path):
    write_tokenizer(tokenizer, tmp_path)
    for again in (
        read_tokenizer(tmp_path),
        restore_tokenizer(json.loads(json.dumps(describe_tokenizer(tokenizer)))),
    ):
        assert again == tokenizer
        assert again.all_tokens(TRAINING) == tokenizer.all_tokens(TRAINING)


@EVERY
@pytest.mark.parametrize("raw", ["", ".", "🎬", "(888)", "日本語", "▁", "_ _"])
def test_odd_titles_have_tokens_or_none_but_never_fail(tokenizer: FittedTokenizer, raw: str):
    assert all(text and kind in range(len(KINDS)) for kind, text in tokenizer.tokens(raw))


@EVERY
def test_marks_are_kept(tokenizer: FittedTokenizer):
    assert [text for kind, text in tokenizer.tokens("Tatort (4/6) (2005)") if kind == MARK] == [
        "<episode>",
        "<year:2005>",
    ]


def subwords() -> TrainedSubwords:
    return next(tokenizer for tokenizer in FITTED if isinstance(tokenizer, TrainedSubwords))


def test_subwords_learn_what_training_repeats():
    learnt = subwords()
    assert pieces(learnt, "kitchen") == ["▁kitchen"] and len(pieces(learnt, "kitchenette")) > 1
    assert pieces(learnt, "kitchenette")[0] == "▁kitchen"
    assert pieces(learnt, "ქართული") == ["▁", "ქართული"]  # letters never seen: one piece, none lost
    assert learnt == Subwords(pieces=300).fit(TRAINING[::-1])  # whatever the order


def test_subwords_without_titles_are_letters_in_one_piece():
    assert Subwords().fit([]).tokens("Tatort") == [(NGRAM, "▁tatort")]


def test_a_description_that_is_none():
    with pytest.raises(KeyError):
        restore_tokenizer({"name": "letters"})
