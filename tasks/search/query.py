"""What is asked of a search: a programme, and what the guide has of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """A programme whose like is searched for. What is not known of it is left out."""

    title: str
    description: str = ""
    channel: str = ""  # name or id of one of the guide's
    hour: int | None = None  # at which it begins, local to the channel


@dataclass(frozen=True)
class Asked:
    """A query, and what the guide has of it."""

    query: Query
    row: int | None  # the guide's title of that show
    raw_title: str  # the guide's, else the query's
    context: list[str]  # tokens of how it airs: as the query says, else as the guide does

    @property
    def aired(self) -> bool:
        """Whether it is compared with titles as they air, or with titles alone."""
        return self.row is not None or bool(self.context)
