"""Recognizes programmes that are not recommended by default: placeholders, shopping and adult programmes.

A placeholder is a title that names no programme ("To be announced"). The rules for shopping and adult
programmes are in excluded.toml: names of categories, and regular expressions for channels and titles.
"""

import functools
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from tasks.text.titles import is_placeholder

Exclusion = Literal["placeholders", "shopping", "adult"]
EXCLUSIONS: tuple[Exclusion, ...] = get_args(Exclusion)


class _Rule(NamedTuple):
    """Rule for one kind of excluded programmes. It applies to a programme if a field of the rule matches."""

    categories: frozenset[str]
    channels: re.Pattern[str]
    titles: re.Pattern[str]


def find_exclusion(title: str, show_key: str, channel: str, categories: Iterable[str]) -> Exclusion | None:
    """Returns the exclusion (placeholders, shopping or adult) to which a programme belongs, or None.

    Args:
        title: Raw title.
        show_key: Show key (normalized title).
        channel: Display name of the channel.
        categories: Categories as in the guide.
    """
    generic, rules = _read_rules()
    names = (category.casefold().strip() for category in categories)
    genre = next((name for name in names if name not in generic), "")
    for kind, rule in rules.items():
        if genre in rule.categories or _is_match(rule.channels, channel) or _is_match(rule.titles, title):
            return kind
    return "placeholders" if is_placeholder(show_key) else None


@functools.lru_cache(maxsize=65536)
def _is_match(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


@functools.cache
def _read_rules() -> tuple[frozenset[str], dict[Exclusion, _Rule]]:
    """Reads excluded.toml. Returns the categories that rules ignore ("generic"), and rules by exclusion."""
    content = tomllib.loads(Path(__file__).with_name("excluded.toml").read_text(encoding="utf-8"))
    kinds: tuple[Exclusion, ...] = ("adult", "shopping")
    rules: dict[Exclusion, _Rule] = {
        kind: _Rule(
            frozenset(map(str.casefold, content[kind]["categories"])),
            _join_patterns(content[kind]["channels"]),
            _join_patterns(content[kind]["titles"]),
        )
        for kind in kinds
    }
    return frozenset(content["generic"]), rules


def _join_patterns(patterns: list[str]) -> re.Pattern[str]:
    """Returns a pattern that matches if one of several patterns matches, ignoring case."""
    return re.compile("|".join(patterns), re.IGNORECASE)
