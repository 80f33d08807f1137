"""Finds programmes that hardly anybody wants to be recommended: placeholders, shopping and adult programmes.

excluded.toml has the names of categories, and the patterns of channels and titles.
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
    categories: frozenset[str]
    channels: re.Pattern[str]
    titles: re.Pattern[str]


def find_exclusion(title: str, show_key: str, channel: str, categories: Iterable[str]) -> Exclusion | None:
    """Returns why a programme is not recommended by default, or None.

    Args:
        title: Raw title.
        show_key: Show key of the title.
        channel: Display name of the channel.
        categories: Categories as in the guide.
    """
    generic, rules = _rules()
    names = (category.casefold().strip() for category in categories)
    first = next((name for name in names if name not in generic), "")
    for kind, rule in rules.items():
        if first in rule.categories or _is_match(rule.channels, channel) or _is_match(rule.titles, title):
            return kind
    return "placeholders" if is_placeholder(show_key) else None


@functools.lru_cache(maxsize=65536)
def _is_match(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


@functools.cache
def _rules() -> tuple[frozenset[str], dict[Exclusion, _Rule]]:
    """Returns the generic categories, and the rules by kind."""
    content = tomllib.loads(Path(__file__).with_name("excluded.toml").read_text(encoding="utf-8"))
    kinds: tuple[Exclusion, ...] = ("adult", "shopping")
    rules: dict[Exclusion, _Rule] = {
        kind: _Rule(
            frozenset(map(str.casefold, content[kind]["categories"])),
            _any_of(content[kind]["channels"]),
            _any_of(content[kind]["titles"]),
        )
        for kind in kinds
    }
    return frozenset(content["generic"]), rules


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)
