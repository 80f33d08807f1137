"""Contract of every tokenizer."""

import json
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.text.splitting import split_words
from tasks.text.titles import parse_title
from tasks.text.tokenizers import (
    Tokenizer,
    describe_tokenizer,
    read_tokenizer,
    restore_tokenizer,
    write_tokenizer,
)
from tasks.text.words import KINDS, MARK, WORD
from tests.worlds import titles

TRAINING = [title for title, _ in titles()] + [
    "Tatort",
    "Tatort (4/6)",
    "Die Sendung mit der Maus",
    "日本語講座",
    "Ελλάδα σήμερα",
]
TOKENIZER_DEFAULTS = [kind() for kind in get_args(Tokenizer)]
EVERY = pytest.mark.parametrize("tokenizer", TOKENIZER_DEFAULTS, ids=lambda tokenizer: tokenizer.name)
RAWS = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from([*TRAINING, "(888)", "日本語", "क्षी", "👍🏽", "#x", "L'or", "Ქ", "ŉ", " - ", ":)"]),
        max_size=4,
    ).map(" ".join),
)


@EVERY
@settings(max_examples=75)
@given(raw=RAWS)
@example(raw="Rote Rosen (888)")
def test_tokens_spell_the_words_of_the_title(tokenizer: Tokenizer, raw: str):
    """Nothing is lost, and tokens of the tokens are the tokens."""
    words = split_words(parse_title(raw).display)
    spelt = " ".join(text for kind, text in tokenizer.tokens(raw) if kind == WORD)
    assert spelt.split() == words
    assert split_words(spelt) == words


@EVERY
@settings(max_examples=50)
@given(raws=st.lists(RAWS, max_size=8))
def test_many_titles_have_the_tokens_of_each(tokenizer: Tokenizer, raws: list[str]):
    assert tokenizer.all_tokens(raws) == [tokenizer.tokens(raw) for raw in raws]


@EVERY
def test_saved_tokenizers_return_the_same_tokens(tokenizer: Tokenizer, tmp_path):
    write_tokenizer(tokenizer, tmp_path)
    for again in (
        read_tokenizer(tmp_path),
        restore_tokenizer(json.loads(json.dumps(describe_tokenizer(tokenizer)))),
    ):
        assert again == tokenizer
        assert again.all_tokens(TRAINING) == tokenizer.all_tokens(TRAINING)


@EVERY
@pytest.mark.parametrize("raw", ["", ".", "🎬", "(888)", "日本語", "▁", "_ _"])
def test_odd_titles_never_fail(tokenizer: Tokenizer, raw: str):
    assert all(text and kind in range(len(KINDS)) for kind, text in tokenizer.tokens(raw))


@EVERY
def test_marks_become_tokens(tokenizer: Tokenizer):
    assert [text for kind, text in tokenizer.tokens("Tatort (4/6) (2005)") if kind == MARK] == [
        "<episode>",
        "<year:2005>",
    ]
