"""The error for unusable guides, vocabularies and models."""

from storage.errors import ExpectedError


class EnrichError(ExpectedError, ValueError):
    """An input cannot be used. The message is one line: problem, expectation, remedy."""
