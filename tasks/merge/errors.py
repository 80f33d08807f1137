"""Defines the error that is raised if guides cannot be merged."""

from storage.errors import ExpectedError


class MergeError(ExpectedError, ValueError):
    """Raised if guides cannot be merged; the message states the reason and the remedy."""
