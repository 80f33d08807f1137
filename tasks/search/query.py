"""Defines search queries: as the user enters them, and after the match with a title of the TV guide."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """Programme for which similar titles are searched. Only the title is required."""

    title: str
    description: str = ""
    channel: str = ""  # name or id of a channel in the guide
    hour: int | None = None  # start hour, local to the channel


@dataclass(frozen=True)
class ResolvedQuery:
    """Query with the matching title of the guide, if there is one."""

    query: Query
    row: int | None  # row number of the matching title; None if the guide has no title of this show
    raw_title: str  # title as spelled in the guide; as spelled in the query if row is None
    context: list[str]  # tokens of channel and hour: of the query if it has any, else of the matching title

    @property
    def has_context(self) -> bool:
        """Whether the query has a channel or an hour, so that vectors with context are compared."""
        return self.row is not None or bool(self.context)
