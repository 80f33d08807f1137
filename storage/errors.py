"""Base class of errors whose cause is outside of GuideSpace."""

from typing import ClassVar


class ExpectedError(Exception):
    """An error that a user can fix. The command prints its message without a traceback.

    Attributes:
        exit_code: Exit code of the command (docs/json.md).
    """

    exit_code: ClassVar[int] = 2
