"""Compares names of feeds with wildcard patterns such as ``https://*`` (fnmatch, case-sensitive)."""

from collections.abc import Sequence
from fnmatch import fnmatchcase


def matches_any(source: str, patterns: Sequence[str]) -> bool:
    """Returns whether the name of a feed (``source``) matches one of the patterns."""
    return any(fnmatchcase(source, pattern) for pattern in patterns)


def rank_of(source: str, patterns: Sequence[str]) -> int:
    """Returns the index of the first pattern that matches the name of a feed, or the number of patterns."""
    ranks = (rank for rank, pattern in enumerate(patterns) if fnmatchcase(source, pattern))
    return next(ranks, len(patterns))
