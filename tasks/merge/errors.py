"""The error of this package."""

from storage.errors import ExpectedError


class MergeError(ExpectedError, ValueError):
    """Guides cannot be merged; the message states the reason and the remedy."""
