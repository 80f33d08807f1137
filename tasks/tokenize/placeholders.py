"""Placeholder titles ("No information", "Paid Programming"): known by a list that users may edit."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def _listed() -> tuple[frozenset[str], tuple[str, ...]]:
    lines = [line.strip().casefold() for line in Path(__file__).with_name("placeholders.txt").read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return frozenset(line for line in lines if not line.endswith("*")), tuple(line[:-1] for line in lines if line.endswith("*"))


def is_placeholder(show_key: str) -> bool:
    """Whether a show key stands for "nothing is known": on the list, begins with one of its starred lines, or holds no letter or digit."""
    exact, beginnings = _listed()
    return show_key in exact or show_key.startswith(beginnings) or not any(character.isalnum() for character in show_key)
