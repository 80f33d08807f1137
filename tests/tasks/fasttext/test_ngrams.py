"""Hashes and n-grams compared with values of fastText."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.fasttext.ngrams import (
    PIECE,
    bucket_ids,
    bucket_ids_of_text,
    enclose_words,
    encode,
    extract_ngrams,
    hash_strings,
)

# text, fastText's hash, plain FNV-1a (which does not sign-extend bytes of 0x80 and more)
REFERENCE = [
    ("", 2166136261, 2166136261),
    ("a", 3826002220, 3826002220),
    ("<", 957132539, 957132539),
    (">", 990687777, 990687777),
    ("</s>", 3617362777, 3617362777),
    ("the", 3020861980, 3020861980),
    ("<the", 924409726, 924409726),
    ("apple", 280767167, 280767167),
    ("<ap", 1520206650, 1520206650),
    ("Tatort", 584134637, 584134637),
    ("<Tat", 3441795104, 3441795104),
    ("ort>", 675398314, 675398314),
    ("café", 1970454601, 2821410889),
    ("é", 1023043777, 513665217),
    ("<é", 672036627, 1990897939),
    ("für", 617465516, 3479998124),
    ("über", 238904527, 2074338511),
    ("<üb", 2515793082, 1440957114),
    ("Пёс", 3867097500, 3303009692),
    ("日本語", 308035559, 2153733351),
    ("😀", 604031496, 866293256),
    ("Löwenzahn", 2468005371, 2061302267),
    ("Die Sendung mit der Maus", 1405437500, 1405437500),
]
TEXTS = [text for text, _, _ in REFERENCE]


def subwords(word: str, shortest: int, longest: int) -> list[str]:
    return [name.decode("utf-8", "surrogatepass") for name in extract_ngrams(word, shortest, longest)]


def fasttext_hash(text: str | bytes, *, signed: bool = True) -> int:
    """Computes the hash byte by byte, as it is defined."""
    value = 2166136261
    for byte in text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"):
        extended = byte | 0xFFFFFF00 if signed and byte >= 0x80 else byte
        value = ((value ^ extended) * 16777619) & 0xFFFFFFFF
    return value


def test_reference_hashes():
    assert hash_strings(TEXTS).tolist() == [value for _, value, _ in REFERENCE]
    assert hash_strings(TEXTS).dtype == np.uint32


def test_the_definition_gives_the_reference_too():
    assert [fasttext_hash(text) for text in TEXTS] == [value for _, value, _ in REFERENCE]
    assert [fasttext_hash(text, signed=False) for text in TEXTS] == [value for _, _, value in REFERENCE]


@settings(max_examples=200)
@given(st.lists(st.text(max_size=20), max_size=12))
def test_many_at_once_equal_single_ones(texts: list[str]):
    assert hash_strings(texts).tolist() == [fasttext_hash(text) for text in texts]


def test_short_and_long_texts_together():
    texts = ["é" * length for length in (1, 63, 64, 65, 200)] + ["x" * 128, "x" * 129, ""]
    assert hash_strings(texts).tolist() == [fasttext_hash(text) for text in texts]


@pytest.mark.parametrize(
    ("word", "shortest", "longest", "grams"),
    [
        ("the", 3, 6, ["<th", "<the", "<the>", "the", "the>", "he>"]),
        ("a", 3, 6, ["<a>"]),
        ("日本語", 3, 6, ["<日本", "<日本語", "<日本語>", "日本語", "日本語>", "本語>"]),
        ("ab", 1, 2, ["<a", "a", "ab", "b", "b>"]),  # a lone < or > is none
        ("", 1, 2, ["<>"]),
        ("", 3, 6, []),
        ("abc", 6, 6, []),
    ],
)
def test_subwords(word: str, shortest: int, longest: int, grams: list[str]):
    assert subwords(word, shortest, longest) == grams


def test_bucket_ids_are_grouped_by_word():
    ids = bucket_ids(["the", "", "a"], 3, 6, 1000)
    assert ids.lengths.tolist() == [6, 0, 1]
    assert ids[0].tolist() == [fasttext_hash(gram) % 1000 for gram in subwords("the", 3, 6)]
    assert ids[2].tolist() == [fasttext_hash("<a>") % 1000]
    assert len(bucket_ids([], 3, 6, 1000)) == 0


@settings(max_examples=150)
@given(
    st.lists(st.text(max_size=9) | st.binary(max_size=9), max_size=8), st.integers(0, 4), st.integers(0, 8)
)
def test_ngrams_equal_their_definition(words: list[str | bytes], shortest: int, longest: int):
    """Start by start, then by length; code points are told by their first byte, also where bytes are no
    UTF-8."""
    hashes = bucket_ids_of_text(*enclose_words(words), shortest, longest, 2**32 - 1)
    for number, word in enumerate(words):
        text = b"<" + (word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")) + b">"
        heads = [place for place, byte in enumerate(text) if byte & 0xC0 != 0x80] + [len(text)]
        expected = []
        for first in range(len(heads) - 1):
            for size in range(max(shortest, 1), longest + 1):
                end = first + size
                if end < len(heads) and not (size == 1 and (first == 0 or end == len(heads) - 1)):
                    expected.append(text[heads[first] : heads[end]])
        assert extract_ngrams(word, shortest, longest) == expected
        assert hashes[number].tolist() == [fasttext_hash(gram) % (2**32 - 1) for gram in expected]


MARKS = st.text(alphabet="<>é日x", max_size=7)  # words that look like the edges of words


@settings(max_examples=150)
@given(st.lists(MARKS | st.text(max_size=9) | st.binary(max_size=9), max_size=8))
def test_enclosed_words_can_be_sliced(words: list[str | bytes]):
    text, begins = enclose_words(words)
    assert [text[begin:end] for begin, end in itertools.pairwise(begins)] == [
        b"<" + encode(word) + b">" for word in words
    ]
    assert begins[0] == 0 and begins[-1] == len(text) and begins.dtype == np.int64


@settings(max_examples=150)
@given(
    st.lists(st.tuples(MARKS | st.text(max_size=9) | st.binary(max_size=9), st.booleans()), max_size=8),
    st.integers(0, 4),
    st.integers(0, 8),
    st.integers(1, 2**31 - 1),
)
def test_bucket_ids_leave_a_reserved_place_before_each_word(
    asked: list[tuple[str | bytes, bool]], shortest: int, longest: int, buckets: int
):
    words, room = [word for word, _ in asked], np.array([more for _, more in asked], dtype=bool)
    expected = bucket_ids(words, shortest, longest, buckets)
    found = bucket_ids_of_text(*enclose_words(words), shortest, longest, buckets, reserve=room)
    assert found.lengths.tolist() == (expected.lengths + room).tolist() and (found.values < buckets).all()
    for number, more in enumerate(room.tolist()):
        own = expected[number].tolist()
        assert own == [
            fasttext_hash(name) % buckets for name in extract_ngrams(words[number], shortest, longest)
        ]
        assert found[number][int(more) :].tolist() == own


@pytest.mark.slow
def test_more_words_than_a_piece_with_long_and_empty_ones():
    rng = np.random.default_rng(3)
    letters = np.array(list("abcdeéжß日😀<>"))
    words = ["".join(rng.choice(letters, size=size)) for size in rng.integers(0, 12, size=PIECE + 50)]
    words[5], words[PIECE - 1], words[PIECE] = "é" * 3000, "", "x" * 1000 + "日"
    ids = bucket_ids(words, 3, 6, 70_000)
    for number in [0, 1, 4, 5, 6, PIECE - 2, PIECE - 1, PIECE, PIECE + 1, PIECE + 49]:
        assert ids[number].tolist() == [
            fasttext_hash(gram) % 70_000 for gram in subwords(words[number], 3, 6)
        ]
    alone = [bucket_ids([word], 3, 6, 70_000).values for word in words]
    assert ids.values.tolist() == np.concatenate(alone).tolist()
