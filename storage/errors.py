"""Base class of errors that a user can fix, such as an unreadable feed."""

from typing import ClassVar


class ExpectedError(Exception):
    """Error that a user can fix. The command line prints the message without a traceback.

    Attributes:
        exit_code: Exit code of the command that raised the error (docs/json.md).
    """

    exit_code: ClassVar[int] = 2
