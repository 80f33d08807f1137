"""The error of a guide, a vocabulary or a model that cannot be used for filling gaps."""

from storage.errors import ExpectedError


class EnrichError(ExpectedError, ValueError):
    """The message is one line: what was found, what was expected, what to do."""
