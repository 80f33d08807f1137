"""What is asked and answered over HTTP: ``similar --json`` and ``explain --json``, in batches.

Answers are written by space.py; these classes are what the OpenAPI page and the tests know of them.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.enrich.explain import Decision
from tasks.search.query import Query
from tasks.search.search import MAX_NEIGHBOURS, Neighbour

MOST_TITLES = 256  # of one request, which the others wait for
MOST_BYTES = 1 << 20
SHOWN = 80  # characters of a value that is refused
EXAMPLE = '{"titles": ["Cooking with Nigella"]}'

Text = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"\S")]


class Programme(BaseModel):
    """A title, and what else is known of a programme (``similar --description --channel --hour``)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: Text
    description: str = Field("", max_length=10_000)
    channel: str = Field("", max_length=1000, description="name or XMLTV id of a channel of the guide")
    hour: int | None = Field(None, ge=0, le=23, description="local hour at which it airs")


class Asked(BaseModel):
    """Titles, or programmes of which more is known."""

    model_config = ConfigDict(extra="forbid", strict=True)

    titles: list[Text | Programme] = Field(
        min_length=1, max_length=MOST_TITLES, examples=[["Cooking with Nigella"]]
    )

    def queries(self) -> list[Query]:
        """As the search takes them."""
        return [Query(one) if isinstance(one, str) else Query(**vars(one)) for one in self.titles]


class AskedSimilar(Asked):
    """Titles whose like is looked for."""

    k: int = Field(10, ge=1, le=MAX_NEIGHBOURS, description="neighbours of each title")
    tonight: bool = Field(False, description="only titles that are still to begin this evening")


@dataclass(frozen=True)
class Airing:
    """When and where; ISO instants in UTC, ``stop`` null where the guide has none."""

    start: str
    stop: str | None
    channel: str


@dataclass(frozen=True)
class Near(Neighbour):
    """An entry of ``similar --json``."""

    corrected_at: str | None = None  # where a person corrected it
    airings: list[Airing] | None = None  # with ``tonight``: those that are still to begin


@dataclass(frozen=True)
class Serving:
    """The model that answered."""

    name: str  # of the registered model
    version: str
    digest: str


@dataclass(frozen=True)
class Similar:
    """Neighbours of a title, nearest first; null, and the reason, where nothing can be answered."""

    title: str
    neighbours: list[Near] | None
    reason: str | None


@dataclass(frozen=True)
class Vector:
    """The vector of a title, unit norm; of two titles with the same ``aired`` the product is the cosine."""

    title: str
    vector: list[float] | None
    aired: bool  # how it airs is part of it; false where the guide lacks the title
    reason: str | None


@dataclass(frozen=True)
class Categories:
    """Who decided what a title is: ``explain TITLE --json``, without its ``corrected``."""

    title: str
    decision: Decision | None
    reason: str | None


@dataclass(frozen=True)
class SimilarAnswers:
    """One answer a title, in the order of the request."""

    model: Serving
    answers: list[Similar]


@dataclass(frozen=True)
class VectorAnswers:
    """One answer a title, in the order of the request."""

    model: Serving
    answers: list[Vector]


@dataclass(frozen=True)
class CategoryAnswers:
    """One answer a title, in the order of the request."""

    model: Serving
    answers: list[Categories]


@dataclass(frozen=True)
class Health:
    """The model that serves. ``stale``: the last look-up or load of another one failed; the log says why."""

    status: Literal["ok", "stale"]
    model: Serving


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered."""

    reason: str


def explain_refusal(error: ValidationError) -> str:
    """One line: where, what was expected, the value seen, an example."""
    problems: list[Any] = error.errors(include_url=False)
    problem = max(problems, key=lambda one: len(one["loc"]))  # of a union the most specific one
    place = ".".join(
        str(part) for part in problem["loc"] if not str(part).startswith(("constrained", "Prog"))
    )
    if problem["type"] == "json_invalid":
        return f"the body is no JSON in UTF-8: {problem['ctx']['error']}; expected for example {EXAMPLE}"
    value = repr(problem["input"])
    seen = value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
    return f"{place or 'the body'}: {problem['msg']}, got {seen}; expected for example {EXAMPLE}"
