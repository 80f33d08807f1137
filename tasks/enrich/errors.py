"""Defines the error that is raised for unusable guides, vocabularies and models."""

from storage.errors import ExpectedError


class EnrichError(ExpectedError, ValueError):
    """Raised if an input cannot be used; the message has the problem, the expected input, and the remedy."""
