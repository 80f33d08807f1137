"""Converts neighbours of a title to JSON documents, for ``guidespace similar`` and the HTTP server."""

from collections.abc import Mapping, Sequence
from typing import Any

from storage.home.corrections import Correction
from tasks.search.search import Neighbour
from tasks.text.titles import parse_title


def neighbour_documents(
    corrections: Mapping[str, Correction], neighbours: Sequence[Neighbour]
) -> list[dict[str, Any]]:
    """Returns neighbours as JSON documents, with the categories that users have corrected.

    Args:
        corrections: Corrections by show key.
        neighbours: Neighbours of a title. A corrected neighbour gets the key ``corrected_at``.
    """
    documents = []
    for neighbour in neighbours:
        correction = corrections.get(parse_title(neighbour.title).show_key)
        corrected_fields = correction.document if correction else {}
        documents.append({**vars(neighbour), **corrected_fields, "title": neighbour.title})
    return documents
