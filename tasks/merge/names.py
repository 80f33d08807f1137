"""Compares names of channels: finds names that are equal after normalization, and similar names.

Channels with similar names may be different: ``BBC One`` and ``BBC One +1``. Therefore, channels with similar
names are only proposed to the user.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

MIN_SIMILARITY = 0.8  # minimum similarity of the names of channels that are proposed
MAX_PROPOSALS = 3  # maximum number of proposals per channel
VARIANT_SIMILARITY = 0.95  # similarity of names that differ only in resolution, country or time shift
_MAX_CANDIDATES = 8  # maximum number of channels whose names are compared letter by letter
_MAX_TRIGRAM_CHANNELS = 200  # trigrams that are in names of more channels are not used
_TIME_SHIFT = re.compile(r"(?:\+|\bplus)\s*(\d{1,2})\b")
_COUNTRY = re.compile(r"^\W*[a-z]{2,3}\s*[:|┃\]]\s*")
_RESOLUTION = re.compile(
    r"\b(?:f|u|q)?hd\b|\bsd\b|\b4k\b|\b8k\b|\bhevc\b|\bh\.?26[45]\b|\b\d{3,4}p\b|\braw\b"
)
_NORMALIZED_TIME_SHIFT = re.compile(r"plus(\d{1,2})(?!\d)")


@lru_cache(maxsize=131_072)
def normalize(name: str) -> str:
    """Returns the letters and digits of a name, in lower case without accents, with "plus1" for "+1"."""
    return _keep_letters_and_digits(_TIME_SHIFT.sub(r"plus\1", _fold(name)))


def normalize_names(names: Iterable[str]) -> frozenset[str]:
    """Returns the distinct normalized names, without names that have neither letters nor digits."""
    return frozenset(filter(None, map(normalize, names)))


def _fold(name: str) -> str:
    """Returns a name in lower case without accents, with "and" for "&"."""
    text = "".join(
        letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter)
    )
    return text.casefold().replace("&", " and ").replace("ß", "ss")


def _keep_letters_and_digits(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum())


@lru_cache(maxsize=131_072)
def _base_name(name: str) -> str:
    """Returns a normalized name without resolution, country prefix and time shift."""
    text = _COUNTRY.sub("", _TIME_SHIFT.sub("", _fold(name)))
    return _keep_letters_and_digits(_RESOLUTION.sub("", text))


def shift_hours_between(first_names: Iterable[str], second_names: Iterable[str]) -> int:
    """Returns the difference of the time shifts in the names of two channels: 1 for "One +1" and "One"."""
    first_shift, second_shift = (
        max(
            (int(hours) for name in names for hours in _NORMALIZED_TIME_SHIFT.findall(normalize(name))),
            default=0,
        )
        for names in (first_names, second_names)
    )
    return first_shift - second_shift


class SimilarNames:
    """Index of names of channels, which finds the channels with similar names.

    Args:
        names: Channel number -> names of the channel.
    """

    def __init__(self, names: Mapping[int, Sequence[str]]) -> None:
        self._keys = {channel: normalize_names(channel_names) for channel, channel_names in names.items()}
        self._by_base: dict[str, list[int]] = defaultdict(list)
        self._by_trigram: dict[str, list[int]] = defaultdict(list)
        for channel, channel_names in names.items():
            for base in {_base_name(name) for name in channel_names} - {""}:
                self._by_base[base].append(channel)
            for trigram in set[str]().union(*map(_trigrams, self._keys[channel])):
                self._by_trigram[trigram].append(channel)

    def find_similar(self, names: Sequence[str]) -> list[tuple[float, int]]:
        """Returns (similarity, channel number) of at most MAX_PROPOSALS channels with similar names."""
        similarities: dict[int, float] = {}
        for base in {_base_name(name) for name in names} - {""}:
            similarities |= dict.fromkeys(self._by_base.get(base, ()), VARIANT_SIMILARITY)
        if not similarities:
            similarities = self._compare_letters(names)
        best = sorted((-similarity, channel) for channel, similarity in similarities.items())
        return [(-value, channel) for value, channel in best[:MAX_PROPOSALS] if -value >= MIN_SIMILARITY]

    def _compare_letters(self, names: Sequence[str]) -> dict[int, float]:
        """Returns the similarities of the channels that share most trigrams with ``names``, by number."""
        similarities: dict[int, float] = {}
        for key in normalize_names(names):
            trigram_counts = Counter(
                channel
                for trigram in _trigrams(key)
                if len(channels := self._by_trigram.get(trigram, ())) <= _MAX_TRIGRAM_CHANNELS
                for channel in channels
            )
            candidates = sorted(trigram_counts.items(), key=lambda item: (-item[1], item[0]))
            for channel, _ in candidates[:_MAX_CANDIDATES]:
                similarity = max(SequenceMatcher(None, key, name).ratio() for name in self._keys[channel])
                similarities[channel] = max(similarity, similarities.get(channel, 0.0))
        return similarities


def _trigrams(key: str) -> set[str]:
    """Returns the character trigrams of a normalized name, including delimiters at its ends."""
    padded_key = f"^{key}$"
    return {padded_key[start : start + 3] for start in range(len(padded_key) - 2)}
