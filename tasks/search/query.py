"""Search queries, before and after they are matched with the guide."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """A programme to find similar titles of. Unknown fields keep their defaults."""

    title: str
    description: str = ""
    channel: str = ""  # name or id of a channel in the guide
    hour: int | None = None  # start hour, local to the channel


@dataclass(frozen=True)
class ResolvedQuery:
    """A query and its matching title of the guide."""

    query: Query
    row: int | None  # of the title in the guide with the same show; None if there is none
    raw_title: str  # from the guide if it has the title, else from the query
    context: list[str]  # context tokens, from the query if given, else from the guide

    @property
    def aired(self) -> bool:
        """Whether the query is compared with vectors of titles with context (else without)."""
        return self.row is not None or bool(self.context)
