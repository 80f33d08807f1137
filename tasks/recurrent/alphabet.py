"""Maps the frequent characters of training strings to rows of an embedding table, and all others to row 0."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged, offsets_of

MIN_COUNT = 2  # minimum number of occurrences of a character that has a row; rarer ones train row 0


@dataclass(frozen=True)
class Alphabet:
    """Characters that have separate rows in an embedding table, sorted by code point.

    The character at index i has row i + 1. All characters outside the alphabet share row 0.
    """

    characters: str

    def __len__(self) -> int:
        """Returns the number of rows, including row 0 for characters outside the alphabet."""
        return len(self.characters) + 1

    @staticmethod
    def from_strings(strings: Sequence[str]) -> "Alphabet":
        """Builds the alphabet of all characters that occur at least MIN_COUNT times in the strings."""
        code_points, counts = np.unique(_code_points(strings), return_counts=True)
        return Alphabet("".join(map(chr, code_points[counts >= MIN_COUNT])))

    def ids(self, strings: Sequence[str]) -> Ragged:
        """Returns the row of each character of each string, int64, or 0 for unknown characters."""
        alphabet, code_points = _code_points([self.characters]), _code_points(strings)
        indices = np.searchsorted(alphabet, code_points)
        in_alphabet = np.append(alphabet, 0)[indices] == code_points  # the appended 0 is no character
        ids = np.where(in_alphabet & (code_points > 0), indices + 1, 0)
        return Ragged(offsets_of([len(text) for text in strings]), ids)


def _code_points(strings: Sequence[str]) -> np.ndarray:
    """Returns the code points of the concatenated strings, uint32 (characters,)."""
    return np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
