"""Error of guides that cannot be merged."""

from storage.errors import ExpectedError


class MergeError(ExpectedError, ValueError):
    """Error: guides cannot be merged. The message states the reason and the remedy."""
