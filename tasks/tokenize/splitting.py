"""Text to words: of one text, or of many at once as one block with a line each (the same words, without a call a text).

NFKC and case folding; apostrophes alike. A word is a run of letters and digits with their combining marks. Within it stay
apostrophes (``grey's``) and the quotation mark of Hebrew abbreviations; an article elided before a word is a word of its own
(``l'amour``: l, amour), so is the n of ``rock'n'roll``; hyphens part words. Hashtags, handles, emoji (with skin tones, joined ones and
flags whole) and emoticons are words. Scripts without spaces give overlapping pairs of signs (日本語: 日本, 本語) or, where vowels are signs of their own (Thai,
Lao, Khmer, Burmese), of syllables as they are written (ข่าวเช้า: ข่าว, วเช้า); a single one stands alone.
"""

from __future__ import annotations

import bisect
import itertools
import re
import unicodedata
from collections.abc import Sequence

from tasks.tokenize.letters import CJK, COMBINING, FLAGS, JOINERS, PICTURES, SKINS, SYLLABIC, SYLLABLE, TAGS, TO_SPACE, apart

BLOCK = 8192  # texts split at once

_SPACED = rf"[^\W_{CJK}{SYLLABIC}]"
_LETTERS = rf"{_SPACED}+(?:[{COMBINING}{JOINERS}]+{_SPACED}*)*"
_ELIDED = r"(?:[cdjlmnst]|qu|un|dell|all|nell|sull|dall|coll|gl)(?='[^\W\d_])"
_INNER = r"(?:'(?!n')|(?<=[\u05d0-\u05ea])\"(?=[\u05d0-\u05ea]))"
_PICTURE = rf"[{PICTURES}][{SKINS}]?[{TAGS}]*"
_EMOTICON = r"[:;=8][-o']?(?:[)(]|/(?!/)|[dp](?![^\W_]))|<3"  # text is case-folded; the p of "csi:paris" is no tongue
_WORD = rf"{_ELIDED}|{_LETTERS}(?:{_INNER}{_LETTERS})*|[#@](?:\w|[{COMBINING}])+|[{CJK}]+|(?:{SYLLABLE})+|[{FLAGS}]{{2}}|{_PICTURE}(?:\u200d{_PICTURE})*|{_EMOTICON}"
_WORDS = re.compile(_WORD)
_LINE_WORDS = re.compile(rf"{_WORD}|\n")
_SPECIAL = re.compile(r"['`\"#@]|[:;=][-o']?[)(/dp]|<3")  # without these, the words of ASCII text are its runs of letters and digits
_LINE_END = re.compile("\n")
_SIGN = re.compile(rf"[{CJK}]|{SYLLABLE}")
_UNSPACED = re.compile(rf"[{CJK}{SYLLABIC}]")
_ALIKE = [(character, "'") for character in "´’ʼ\u2018\u201b\u05f3"] + [("\u05f4", '"'), ("ŉ", "'n"), ("\ufe0e", ""), ("\ufe0f", "")]


def fold(text: str) -> str:
    """The text as words are found in it: apostrophes alike, NFKC, case-folded. Folding it again changes nothing."""
    text = text.replace("`", "'")
    if text.isascii():
        return text.lower()
    for character, plain in _ALIKE:  # before NFKC, which would make a space of ´
        text = text.replace(character, plain)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def split_words(text: str) -> list[str]:
    """Words of a text."""
    return _pairs(_WORDS.findall(fold(text)))


def split_all_words(texts: Sequence[str]) -> list[list[str]]:
    """Words of many texts, none of which holds a line break: equal to ``[split_words(text) for text in texts]``."""
    found: list[list[str]] = []
    for start in range(0, len(texts), BLOCK):
        found += _split_block(texts[start : start + BLOCK])
    return found


def _split_block(texts: Sequence[str]) -> list[list[str]]:
    """By str.split where that is the same; the others by the regular expression."""
    plain = [text if text.isascii() else "" for text in texts]
    block = fold("\n".join(plain))
    found = [line.split() for line in block.translate(TO_SPACE).split("\n")]
    _split_special(found, range(len(texts)), block, _special_lines(block))
    far = [row for row, text in enumerate(texts) if text and not plain[row]]
    if far:
        folded = fold("\n".join([texts[row] for row in far]))
        lines, ruled = apart(folded)
        for row, line in zip(far, lines, strict=True):
            found[row] = line.split()
        _split_special(found, far, folded, _special_lines(folded).union(ruled))
    return found


def _special_lines(block: str) -> set[int]:
    """Numbers of the lines of folded text in which ASCII characters make words that are no runs of letters and digits."""
    ends = [match.start() for match in _LINE_END.finditer(block)]
    return {bisect.bisect_left(ends, match.start()) for match in _SPECIAL.finditer(block)}


def _split_special(found: list[list[str]], rows: Sequence[int], block: str, special: set[int]) -> None:
    """Splits lines of folded text by the regular expression; line i of the block is row ``rows[i]`` of what is found."""
    if not special:
        return
    lines, numbers = block.split("\n"), sorted(special)
    chosen = "\n".join([lines[number] for number in numbers])
    words = _LINE_WORDS.findall(chosen)
    paired = _UNSPACED.search(chosen) is not None
    begin = 0
    for number, end in zip(numbers, [place for place, word in enumerate(words) if word == "\n"] + [len(words)], strict=True):
        found[rows[number]] = _pairs(words[begin:end]) if paired else words[begin:end]
        begin = end + 1


def _pairs(words: list[str]) -> list[str]:
    """The words, runs of a script without spaces as their overlapping pairs."""
    if not any(map(_UNSPACED.match, words)):
        return words
    return [part for word in words for part in (_pairs_of(word) if _UNSPACED.match(word) else [word])]


def _pairs_of(run: str) -> list[str]:
    signs = _SIGN.findall(run)
    return [first + second for first, second in itertools.pairwise(signs)] if len(signs) > 2 else [run]
