"""Which lines are worth a search: by the characters they hold, and by a look for all patterns of the same needs at once.

Python's regular expressions try every pattern at every character, and one title in nine has a mark. So an automaton (RE2, whose time does not
grow with the number of patterns) looks first, for something that every match of a pattern is also a match of.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.tokenize.letters import digits

# What a line holds. OTHER: beyond ASCII; FAR: beyond Hebrew, Arabic and the scripts of India (Thai, CJK, signs), or a word in capitals at its beginning.
BRACKET, DIGIT, COLON, HASH, OTHER, GREEK, CYRILLIC, FAR = (1 << bit for bit in range(8))

LOOK_FROM = 3000  # lines; for fewer, preparing the looks takes longer than they save
_SET = r"\[(?:\\.|[^\]\\])*\]"
_LOOSER = (  # assertions, which RE2 does not know; its digits, which are ASCII; counted repetitions, which multiply its states
    (rf"\\b|\(\?<?[=!](?:{_SET}|\\.|[^()\[\]\\]|\((?:{_SET}|\\.|[^()\[\]\\])*\))*\)", ""),
    (r"\\d", r"\\p{Nd}"),
    (r"\{0,\d+\}", "*"),
    (r"\{\d+(?:,\d+)?\}", "+"),
)
_CAPITALS = re.compile(r"LIVE (?<=^LIVE )", re.MULTILINE)  # begins with a literal, which is searched for as such
_ASCII = np.zeros(128, dtype=np.uint8)
_ASCII[[ord(character) for character in "(["]], _ASCII[ord(":")], _ASCII[ord("#")], _ASCII[ord("0") : ord("9") + 1] = BRACKET, COLON, HASH, DIGIT


def loosened(patterns: Sequence[str]) -> str:
    """Patterns as one for RE2, ignoring case, that finds at least every line in which one of them matches."""
    pattern = "|".join([*patterns, "[İı]"])  # to Python an i, to RE2 not
    for part, replaced in _LOOSER:
        pattern = re.sub(part, replaced, pattern)
    return pattern


def look(lines: Sequence[str], holds: np.ndarray, patterns: Mapping[int, str]) -> dict[int, np.ndarray]:
    """By what a pattern needs, which lines it may match: bool (lines,). Too many do no harm.

    Args:
        lines: None with a line break.
        holds: What they hold.
        patterns: For RE2, by needs: what a line must hold one of.
    """
    found = {needs: (holds & needs) > 0 for needs in patterns}
    if len(lines) < LOOK_FROM:
        return found
    column = pa.array(lines, pa.string())
    for needs, pattern in patterns.items():
        rows = np.flatnonzero(found[needs])
        matches = pc.match_substring_regex(column.take(pa.array(rows)), pattern=pattern, ignore_case=True)  # pyright: ignore[reportAttributeAccessIssue]
        found[needs][rows] = matches.to_numpy(zero_copy_only=False)
    return found


def holdings(texts: Sequence[str]) -> np.ndarray:
    """What texts hold, of BRACKET to FAR: uint8 (texts,). Too much does no harm."""
    if not texts:
        return np.zeros(0, dtype=np.uint8)
    block = "\n".join(texts) + "\n"
    codes = np.frombuffer(block.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    found = (_ASCII if block.isascii() else _of_characters())[codes]
    ends = np.flatnonzero(codes == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    features = np.bitwise_or.reduceat(found, starts)
    for match in _CAPITALS.finditer(block):
        features[np.searchsorted(ends, match.start())] |= FAR
    return features


@functools.cache
def _of_characters() -> np.ndarray:
    """What each code point is, uint8 (0x110000,)."""
    found = np.full(0x110000, OTHER, dtype=np.uint8)
    found[0x370:0x400] |= GREEK
    found[0x1F00:0x2000] |= GREEK
    found[0x400:0x530] |= CYRILLIC
    found[0xE00:] |= FAR
    found[digits()] |= DIGIT
    found[ord("【")] |= BRACKET
    found[:128] = _ASCII
    return found
