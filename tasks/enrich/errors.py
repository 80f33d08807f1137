"""Error of unusable guides, vocabularies and models."""

from storage.errors import ExpectedError


class EnrichError(ExpectedError, ValueError):
    """Error: an input cannot be used. The message has the problem, the expected input, and the remedy."""
