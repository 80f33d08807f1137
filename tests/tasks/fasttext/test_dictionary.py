"""The scan of a dictionary, and the search for words by hash."""

from pathlib import Path

import numpy as np
import pytest

from tasks.fasttext import FastText
from tasks.fasttext.layout import Header
from tasks.fasttext.writer import write_bin

HEADER = Header(dim=1, bucket=0, minn=0, maxn=0)
COUNTS = {
    "small": [0, 1, 7, 255],
    "with zeros within": [256, 257, 65_536, 1 << 24, 0x0100_0001, 1 << 40, 0x01_00_01_00_01],
    "all kinds": [0, 1, 255, 256, 65_535, 65_536, 1 << 31, 1 << 40],
}
LARGEST = [(1 << 56) - 1, 1 << 56, (1 << 56) + 1, (1 << 60) + 256]


@pytest.mark.parametrize("kind", COUNTS)
def test_words_and_counts(tmp_path: Path, kind: str):
    """4,000 entries in several blocks; words of one byte up, with bytes that look like a tail's."""
    rng = np.random.default_rng(5)
    alphabet = np.array([1, 2, 9, 32, 65, 97, 98, 128, 195, 255], dtype=np.uint8)
    words = list(
        {
            alphabet[rng.integers(0, len(alphabet), size=rng.integers(1, 16))].tobytes(): None
            for _ in range(4_000)
        }
    )
    words.insert(500, b"x" * 300_000)  # longer than a block
    counts = rng.choice(COUNTS[kind], size=len(words)).tolist()
    if kind == "all kinds":
        counts[1000 : 1000 + len(LARGEST)] = LARGEST
    write_bin(
        tmp_path / "model.bin",
        HEADER,
        list(zip(words, counts, strict=True)),
        [np.zeros((len(words), 1))],
        [np.zeros((len(words), 1))],
    )
    dictionary = FastText.open(tmp_path / "model.bin").dictionary
    assert dictionary.words() == words and dictionary.counts.tolist() == counts
    assert dictionary.ids(words).tolist() == list(range(len(words)))
    assert dictionary.ids([word + b"?" for word in words[:1000]]).tolist() == [-1] * 1000


def test_the_last_of_duplicate_words_is_used(tmp_path: Path):
    words = [b"goal", b"murder", b"goal", *(str(number).encode() for number in range(100)), b"goal"]
    write_bin(
        tmp_path / "model.bin",
        HEADER,
        [(word, 1) for word in words],
        [np.zeros((len(words), 1))],
        [np.zeros((len(words), 1))],
    )
    assert FastText.open(tmp_path / "model.bin").dictionary.ids(["goal", "murder", "7", "gaol"]).tolist() == [
        103,
        1,
        10,
        -1,
    ]


def test_words_with_equal_hashes_are_distinguished(tmp_path: Path):
    """costarring and liquid, declinate and macallums share their FNV-1a hash."""
    words = [b"liquid", b"declinate", b"costarring"]
    write_bin(
        tmp_path / "model.bin", HEADER, [(word, 1) for word in words], [np.zeros((3, 1))], [np.zeros((3, 1))]
    )
    assert FastText.open(tmp_path / "model.bin").dictionary.ids(
        ["costarring", "liquid", "declinate", "macallums"]
    ).tolist() == [2, 0, 1, -1]


@pytest.mark.parametrize("number", [1, 2, 3, 64, 5000])
def test_hashes_up_to_a_number_are_counted(tmp_path: Path, number: int):
    """Also below the first, above the last, and where many entries have one hash."""
    words = [b"goal"] * (number // 2) + [str(place).encode() for place in range(number - number // 2)]
    write_bin(
        tmp_path / "model.bin",
        HEADER,
        [(word, 1) for word in words],
        [np.zeros((number, 1))],
        [np.zeros((number, 1))],
    )
    dictionary = FastText.open(tmp_path / "model.bin").dictionary
    hashes = dictionary._index[0]
    near = hashes.astype(np.int64)[:, None] + [-1, 0, 1]
    wanted = np.append(
        near[(near >= 0) & (near < 2**32)],
        [0, 2**32 - 1, *np.random.default_rng(0).integers(0, 2**32, size=1000)],
    ).astype(np.uint32)
    np.testing.assert_array_equal(
        dictionary._count_up_to(wanted), np.searchsorted(hashes, wanted, side="right")
    )


def test_words_with_angle_brackets_and_long_common_prefixes(tmp_path: Path):
    long = [b"x" * 200, b"x" * 199 + b"y", b"x" * 128, b"x" * 8, b"x" * 16, "日".encode() * 60]
    words = [b"<", b">", b"><", b"a><b", b"<a>", b"a", *long]
    write_bin(
        tmp_path / "model.bin",
        HEADER,
        [(word, 1) for word in words],
        [np.zeros((len(words), 1))],
        [np.zeros((len(words), 1))],
    )
    dictionary = FastText.open(tmp_path / "model.bin").dictionary
    assert (
        dictionary.ids(words).tolist()
        == dictionary.ids([word.decode() for word in words]).tolist()
        == list(range(len(words)))
    )
    assert dictionary.ids(["", "<>", "a>", "b", "x" * 201, "x" * 7, "日" * 61]).tolist() == [-1] * 7
