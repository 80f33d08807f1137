"""The error for unusable guides, vocabularies and models."""

from storage.errors import ExpectedError


class EnrichError(ExpectedError, ValueError):
    """An input cannot be used. The message has one line: the problem, what is expected, and what to do."""
