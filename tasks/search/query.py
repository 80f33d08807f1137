"""Search queries: as the user enters them, and after they are matched with titles of the TV guide."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """Programme for which similar titles are searched. Unknown fields keep their defaults."""

    title: str
    description: str = ""
    channel: str = ""  # name or id of a channel in the guide
    hour: int | None = None  # start hour, local to the channel


@dataclass(frozen=True)
class ResolvedQuery:
    """Query with the title of the guide that it matches, if there is one."""

    query: Query
    row: int | None  # row number of the matching title; None if the guide has no title of this show
    raw_title: str  # title as spelled in the guide; as spelled in the query if row is None
    context: list[str]  # tokens of channel and hour: of the query if it has any, else of the matching title

    @property
    def aired(self) -> bool:
        """Whether channel or hour is known, so that vectors with context are compared."""
        return self.row is not None or bool(self.context)
