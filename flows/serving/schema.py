"""Defines the JSON schemas of requests and responses.

The answer for a title is the JSON of ``similar --json`` and ``explain --json``. loaded_model.py serializes
the answers itself; the response classes are for OpenAPI and the tests.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.enrich.explain import Decision
from tasks.search.query import Query
from tasks.search.search import MAX_NEIGHBOURS, Neighbour

MAX_TITLES = 256  # maximum per request, because a long request delays the requests of other clients
MAX_BODY_BYTES = 1 << 20  # maximum size of the body of a request
MAX_SHOWN_CHARACTERS = 80  # maximum length of a rejected value in an error message
EXAMPLE = '{"titles": ["Cooking with Nigella"]}'

AnswerT = TypeVar("AnswerT")
TitleText = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"\S")]


class Programme(BaseModel):
    """A title with optional details of a programme (as ``similar --description --channel --hour``)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: TitleText
    description: str = Field("", max_length=10_000)
    channel: str = Field("", max_length=1000, description="name or XMLTV id of a channel of the guide")
    hour: int | None = Field(None, ge=0, le=23, description="local hour at which it airs")


class TitlesRequest(BaseModel):
    """Request with titles, each with or without details of a programme."""

    model_config = ConfigDict(extra="forbid", strict=True)

    titles: list[TitleText | Programme] = Field(
        min_length=1, max_length=MAX_TITLES, examples=[["Cooking with Nigella"]]
    )

    def queries(self) -> list[Query]:
        """Converts the titles to queries of the search."""
        return [Query(item) if isinstance(item, str) else Query(**vars(item)) for item in self.titles]


class SimilarRequest(TitlesRequest):
    """Request for the titles that are nearest to each title in ``titles``."""

    k: int = Field(10, ge=1, le=MAX_NEIGHBOURS, description="number of neighbours per title")
    tonight: bool = Field(False, description="only titles that have yet to begin this evening")


@dataclass(frozen=True)
class Airing:
    """Time and channel of a broadcast; instants are ISO 8601 in UTC, ``stop`` is null if unknown."""

    start: str
    stop: str | None
    channel: str


@dataclass(frozen=True)
class SimilarTitle(Neighbour):
    """A similar title, as in the output of ``similar --json``."""

    corrected_at: str | None = None  # instant of a user's correction of its categories
    airings: list[Airing] | None = None  # with ``tonight``: airings that have yet to begin


@dataclass(frozen=True)
class ModelInfo:
    """The model that computed the answers."""

    name: str  # name of the registered model
    version: str
    digest: str


@dataclass(frozen=True)
class Similar:
    """Neighbours of a title, nearest first. If there are none, they are null, and ``reason`` says why."""

    title: str
    neighbours: list[SimilarTitle] | None
    reason: str | None


@dataclass(frozen=True)
class Vector:
    """Unit-norm vector of a title. The dot product of two vectors with equal ``aired`` is their cosine."""

    title: str
    vector: list[float] | None
    aired: bool  # whether airing features are included; false if the guide lacks the title
    reason: str | None


@dataclass(frozen=True)
class Categories:
    """The categories of a title and their source, as in ``explain TITLE --json`` (except ``corrected``)."""

    title: str
    decision: Decision | None
    reason: str | None


@dataclass(frozen=True)
class Answers(Generic[AnswerT]):
    """One answer per title, in the order of the request."""

    model: ModelInfo
    answers: list[AnswerT]


@dataclass(frozen=True)
class Health:
    """State of the server and its model: ``stale`` if the last attempt to load a newer model failed."""

    status: Literal["ok", "stale"]
    model: ModelInfo


@dataclass(frozen=True)
class ErrorResponse:
    """The reason why a request was not answered."""

    reason: str


def format_validation_error(error: ValidationError) -> str:
    """Returns one line about an invalid request: the field, the expectation, the value and an example."""
    problems: list[Any] = error.errors(include_url=False)
    problem = max(problems, key=lambda details: len(details["loc"]))  # the most specific one of a union
    field = ".".join(
        str(part) for part in problem["loc"] if not str(part).startswith(("constrained", "Prog"))
    )
    if problem["type"] == "json_invalid":
        return f"the body is not JSON in UTF-8: {problem['ctx']['error']}; expected for example {EXAMPLE}"
    value = repr(problem["input"])
    shown_value = value if len(value) <= MAX_SHOWN_CHARACTERS else f"{value[:MAX_SHOWN_CHARACTERS]}…"
    return f"{field or 'the body'}: {problem['msg']}, got {shown_value}; expected for example {EXAMPLE}"
