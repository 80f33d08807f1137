"""Normalizes category texts of guides, and splits texts that list several categories."""

import re
import unicodedata

from tasks.text.titles import clean_text

_SEPARATORS = re.compile(r"\s*[,;/|]\s*")
EDGES = " .:-–\t"  # characters that are stripped from both ends of a category


def fold(text: str) -> str:
    """Normalizes a category: repairs characters, applies NFKC and case folding, and strips punctuation."""
    return unicodedata.normalize("NFKC", clean_text(text)).casefold().strip(EDGES)


def split_list(category: str) -> list[str]:
    """Splits a list such as "Drama, Crime" into its categories, each normalized by ``fold``."""
    # Folds the text before it splits it, because repaired characters can be separators.
    items = (part.strip(EDGES) for part in _SEPARATORS.split(fold(category)))
    return [item for item in items if item]
