"""Defines the error for guides, vocabularies and models that cannot be used."""

from storage.errors import ExpectedError


class EnrichError(ExpectedError, ValueError):
    """Error: a guide, vocabulary, model or option cannot be used. The message states the remedy."""
