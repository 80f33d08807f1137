"""Splits texts of any language into words.

Texts are normalized to NFKC and case-folded, and all kinds of apostrophes become the same character. These
rules apply:

- A word is a sequence of letters and digits with their combining marks. Hyphens separate words.
- Apostrophes within a word (``grey's``) and the quotation mark in Hebrew abbreviations belong to the word. An
  elided article is a separate word (``l'amour``: l, amour), as is the n in ``rock'n'roll``.
- A hashtag, a handle, an emoji (also with a skin tone, joined, or a flag) or an emoticon is a word.
- Chinese and Japanese texts are split into overlapping pairs of characters (日本語: 日本, 本語). Thai, Lao,
  Khmer and Burmese texts are split into overlapping pairs of written syllables (ข่าวเช้า: ข่าว, วเช้า). A
  single character or syllable is a word.
"""

import itertools
import re
import unicodedata


def _character_class(category: str, *ranges: range) -> str:
    """Returns the code points in ``ranges`` of a Unicode category, as ranges of a regular expression."""
    code_points = [n for block in ranges for n in block if unicodedata.category(chr(n))[0] == category]
    runs = [list(run) for _, run in itertools.groupby(enumerate(code_points), lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)


# Combining marks (vowel signs, accents and points), which belong to the preceding letter.
# The ranges exclude Chinese and Korean characters and the private area, which saves .01 s at import.
COMBINING = _character_class("M", range(0x300, 0x3400), range(0xA000, 0xAC00), range(0xFB00, 0x1F000))
JOINERS = "\u200c\u200d"  # cleaned text has joiners only between letters of scripts that need them
WORD = rf"[^\W_](?:[^\W_]|[{COMBINING}])*"  # letters and digits with their combining marks
# CJK: characters of Japanese and Chinese. SYLLABIC: letters of Thai, Lao, Burmese and Khmer.
CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SYLLABIC_BLOCKS = (0xE00, 0xF00), (0x1000, 0x10A0), (0x1780, 0x1800), (0xA9E0, 0xAA00), (0xAA60, 0xAA80)
SYLLABIC = _character_class("L", *(range(*block) for block in _SYLLABIC_BLOCKS))
# Matches a consonant and the signs before, above, below and after the consonant. Vowels of Thai and Lao are
# letters; stacking signs of Khmer and Burmese join the next consonant.
SYLLABLE = (
    rf"[\u0e40-\u0e44\u0ec0-\u0ec4]*[{SYLLABIC}]"
    rf"(?:[\u17d2\u1039][{SYLLABIC}]|[{COMBINING}{JOINERS}\u0e30\u0e32\u0e45\u0eb0\u0eb2])*"
)
PICTURES = (
    "\u203c\u2049\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55"
    "\U0001f000-\U0001f0ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff"
)
FLAGS, SKIN_TONES, EMOJI_TAGS = "\U0001f1e6-\U0001f1ff", "\U0001f3fb-\U0001f3ff", "\U000e0020-\U000e007f"

# Letter or digit of a script that separates words by spaces.
_SPACED_LETTER = rf"[^\W_{CJK}{SYLLABIC}]"
_LETTERS = rf"{_SPACED_LETTER}+(?:[{COMBINING}{JOINERS}]+{_SPACED_LETTER}*)*"
# Elided article or preposition, such as the l in "l'amour".
_ELISION = r"(?:[cdjlmnst]|qu|un|dell|all|nell|sull|dall|coll|gl)(?='[^\W\d_])"
# Apostrophe within a word, or quotation mark in a Hebrew abbreviation.
_APOSTROPHE = r"(?:'(?!n')|(?<=[\u05d0-\u05ea])\"(?=[\u05d0-\u05ea]))"
_EMOJI = rf"[{PICTURES}][{SKIN_TONES}]?[{EMOJI_TAGS}]*"
# The text is case-folded, so ":D" is ":d". The ":p" in "csi:paris" is not an emoticon.
_EMOTICON = r"[:;=8][-o']?(?:[)(]|/(?!/)|[dp](?![^\W_]))|<3"
_WORDS = re.compile(
    rf"{_ELISION}|{_LETTERS}(?:{_APOSTROPHE}{_LETTERS})*|[#@](?:\w|[{COMBINING}])+|[{CJK}]+|(?:{SYLLABLE})+"
    rf"|[{FLAGS}]{{2}}|{_EMOJI}(?:\u200d{_EMOJI})*|{_EMOTICON}"
)
# ASCII text without these characters is split by _ASCII_WORDS in half the time.
_SPECIAL_CHARACTER = re.compile(r"['#@:;=<]")
_ASCII_WORDS = re.compile(r"[a-z0-9]+")
_CHARACTER_OR_SYLLABLE = re.compile(rf"[{CJK}]|{SYLLABLE}")
_UNSPACED_LETTER = re.compile(rf"[{CJK}{SYLLABIC}]")  # of scripts without spaces between words
_REPLACEMENTS = dict.fromkeys("`´’ʼ\u2018\u201b\u05f3", "'") | {
    "\u05f4": '"',
    "ŉ": "'n",
    "\ufe0e": "",
    "\ufe0f": "",
}
_REPLACED_CHARACTER = re.compile(f"[{''.join(_REPLACEMENTS)}]")


def fold(text: str) -> str:
    """Normalizes a text to NFKC, case-folds it, and replaces all kinds of apostrophes by "'"."""
    if text.isascii():
        return text.replace("`", "'").lower()
    # Characters are replaced before NFKC, which would replace ´ by a space.
    text = _REPLACED_CHARACTER.sub(lambda match: _REPLACEMENTS[match[0]], text)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def split_words(text: str) -> list[str]:
    """Splits a text into case-folded words. Scripts without spaces are split into overlapping pairs."""
    folded_text = fold(text)
    if folded_text.isascii() and not _SPECIAL_CHARACTER.search(folded_text):
        return _ASCII_WORDS.findall(folded_text)
    words = _WORDS.findall(folded_text)
    if not _UNSPACED_LETTER.search(folded_text):
        return words
    pairs_and_words = []
    for word in words:
        signs = _CHARACTER_OR_SYLLABLE.findall(word) if _UNSPACED_LETTER.match(word) else ()
        pairs = [first + second for first, second in itertools.pairwise(signs)]
        pairs_and_words += pairs if len(signs) > 2 else [word]
    return pairs_and_words
