"""Normalizes the texts of categories, and splits lists of categories."""

import re
import unicodedata

from tasks.text.titles import clean_text

_LISTS = re.compile(r"\s*[,;/|]\s*")
EDGES = " .:-–\t"  # characters that are stripped


def fold(text: str) -> str:
    """Repairs, normalizes and case-folds a category, and strips surrounding punctuation."""
    return unicodedata.normalize("NFKC", clean_text(text)).casefold().strip(EDGES)


def split_list(category: str) -> list[str]:
    """Returns the folded items of a list such as "Drama, Crime"; one item if it is no list."""
    # ``fold`` repairs the text; this precedes the split, because repairs can contain separators
    items = (part.strip(EDGES) for part in _LISTS.split(fold(category)))
    return [item for item in items if item]
