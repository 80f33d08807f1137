"""Characters to rows of a table: an alphabet made from the training strings; row 0 is of any other character."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged, offsets_of

FEWEST = 2  # occurrences a character needs for a row of its own: the rarer ones train that of the unknown


@dataclass(frozen=True)
class Alphabet:
    """Known characters by code point, rising; that at place i has row i + 1."""

    characters: str

    def __len__(self) -> int:
        """Rows of the table, that of unknown characters among them."""
        return len(self.characters) + 1

    @staticmethod
    def of(strings: Sequence[str]) -> "Alphabet":
        """The characters that occur at least twice in strings."""
        found, counts = np.unique(_code_points(strings), return_counts=True)
        return Alphabet("".join(map(chr, found[counts >= FEWEST])))

    def ids(self, strings: Sequence[str]) -> Ragged:
        """Row of each character of each string, int64; 0 for an unknown one."""
        known, asked = _code_points([self.characters]), _code_points(strings)
        places = np.searchsorted(known, asked)
        found = np.append(known, 0)[places] == asked  # behind the last: no character is code point 0
        return Ragged(
            offsets_of([len(text) for text in strings]), np.where(found & (asked > 0), places + 1, 0)
        )


def _code_points(strings: Sequence[str]) -> np.ndarray:
    return np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
