r"""Classes of characters that Python's ``\w`` does not know, as parts of regular expressions' character sets."""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np


def _of_category(category: str, *ranges: range) -> str:
    """Ranges of the characters of a general category."""
    points = [point for points in ranges for point in points if unicodedata.category(chr(point))[0] == category]
    starts = [point for before, point in zip([-2, *points], points, strict=False) if point != before + 1]
    ends = [point for point, after in zip(points, [*points[1:], -2], strict=True) if after != point + 1]
    return "".join(chr(start) if start == end else f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


COMBINING = _of_category("M", range(0x300, 0x1F000))  # vowel signs, accents, points: they belong to the letter before
JOINERS = "\u200c\u200d"  # between letters of scripts that need them: clean text holds no others
CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # scripts without spaces; Hangul has them
# Thai and Lao, Burmese, Khmer: no spaces either.
SYLLABIC = _of_category("L", range(0xE00, 0xF00), range(0x1000, 0x10A0), range(0x1780, 0x1800), range(0xA9E0, 0xAA00), range(0xAA60, 0xAA80))
# A consonant with what is written before, above, below and behind it: vowels of Thai and Lao are letters, Khmer's and Burmese's stackers bind the letter behind them.
SYLLABLE = rf"[\u0e40-\u0e44\u0ec0-\u0ec4]*[{SYLLABIC}](?:[\u17d2\u1039][{SYLLABIC}]|[{COMBINING}{JOINERS}\u0e30\u0e32\u0e45\u0eb0\u0eb2])*"
PICTURES = "\u203c\u2049\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001f0ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff"
FLAGS, SKINS, TAGS = "\U0001f1e6-\U0001f1ff", "\U0001f3fb-\U0001f3ff", "\U000e0020-\U000e007f"


TO_SPACE = {code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != "\n"}  # for str.translate of ASCII text: what is in no word


@functools.cache
def digits() -> np.ndarray:
    """Whether each code point is a decimal digit of any script: bool (0x110000,)."""
    return np.fromiter((chr(point).isdecimal() for point in range(0x110000)), dtype=bool, count=0x110000)


BETWEEN_WORDS, PART_OF_WORD, BY_RULE = 0, 1, 2
FAR = 0xFFFF  # stands for all characters from there on


@functools.cache
def kinds_of_characters() -> np.ndarray:
    """What a character of folded text is to str.split: part of a word, between words, or of those whose words need the regular expression: uint8 (FAR + 1,)."""
    kinds = np.array([chr(point).isalnum() for point in range(FAR + 1)], dtype=np.uint8)
    ruled = re.compile(f"[{COMBINING}{JOINERS}{CJK}{SYLLABIC}{PICTURES}{FLAGS}{SKINS}{TAGS}]")
    kinds[[point for point in range(0x80, FAR) if ruled.match(chr(point))]] = BY_RULE
    kinds[FAR] = BY_RULE
    return kinds


def apart(folded: str) -> tuple[list[str], list[int]]:
    """Lines of folded text, the words of each with one space between, and the numbers of the lines whose words need the regular expression."""
    codes = np.frombuffer(folded.encode("utf-32-le"), dtype=np.uint32)
    kinds = kinds_of_characters().take(codes, mode="clip")
    ends = codes == ord("\n")
    between = (kinds == BETWEEN_WORDS) & ~ends
    kept = ~between
    kept[1:] |= kept[:-1] & ~ends[:-1]
    spaced = np.where(between, np.uint32(ord(" ")), codes)[kept].tobytes().decode("utf-32-le")
    ruled = np.searchsorted(np.flatnonzero(ends), np.flatnonzero(kinds == BY_RULE))
    return f"{spaced}\n".replace(" \n", "\n")[:-1].split("\n"), np.unique(ruled).tolist()
