"""What ``mlflow models serve`` runs: titles in, the nearest titles of the guide out.

MLflow keeps this file with the model (models from code) together with the few files of ours that it imports,
so a served model needs no checkout. A request::

    curl -H 'Content-Type: application/json' http://127.0.0.1:5000/invocations \
      -d '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}, "params": {"k": 3}}'

Further columns, each of which may be null: ``description``, and of a programme that the guide does not have
``channel`` (name or id) and ``hour`` (0 to 23, local). The answer has one row a title, ``{"predictions":
[{"title", "neighbours": [{"title", "cosine", "categories", "channels", "editions"}], "reason"}]}``; of one
that cannot be answered ``neighbours`` is null and ``reason`` says why.
"""

import dataclasses
import logging
import sys
from typing import Any

import pandas
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from tasks.search.query import Query
from tasks.search.search import SearchError, TitleSearch

PARAMS = {"k"}
COLUMNS = [field.name for field in dataclasses.fields(Query)]
# MLflow's warning, of models with these parameters
IGNORED = f"are ignored for inference. Supported params are: {PARAMS}"
EXAMPLE = '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}}'


class TitleModel(PythonModel):
    """Opens the model folder once, answers from its memory maps."""

    def load_context(self, context: PythonModelContext) -> None:
        """Opens the folder that was logged as the artifact ``model``."""
        self.search = TitleSearch.open(context.artifacts["model"])
        logging.getLogger("mlflow.models.utils").addFilter(refuse_ignored)
        if note := self.search.recall_note():
            print(note, file=sys.stderr)

    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]  (MLflow's own has no annotation, read as None)
        self, context: PythonModelContext, model_input: pandas.DataFrame, params: dict[str, Any] | None = None
    ) -> pandas.DataFrame:
        """Finds the neighbours of each row: ``title`` and, if given, ``description``, ``channel``, ``hour``;
        ``k`` of them (1 to 1000, default 10).

        Raises:
            MlflowException: No such column, an empty title, a description that is no text, an unknown
                parameter, k out of bounds: the served model answers 400.
        """
        if unknown := set(params or {}) - PARAMS:
            raise _invalid(f"unknown parameters {sorted(unknown)}; known are {sorted(PARAMS)}")
        frame = pandas.DataFrame(model_input)
        if "title" not in frame.columns:
            raise _invalid(f"expected a column 'title', got {[*map(str, frame.columns)]}; send {EXAMPLE}")
        known = [name for name in COLUMNS if name in frame.columns]
        rows = zip(*(frame[name].tolist() for name in known), strict=True)
        queries = [_query(row, dict(zip(known, values, strict=True))) for row, values in enumerate(rows)]
        try:
            found = self.search.similar_many(queries, int((params or {}).get("k", 10)))
        except ValueError as error:
            raise _invalid(str(error)) from error
        neighbours = [
            None if isinstance(near, SearchError) else [*map(dataclasses.asdict, near)] for near in found
        ]
        reasons = [str(near) if isinstance(near, SearchError) else None for near in found]
        reason = pandas.Series(reasons, dtype=object)
        titles = [query.title for query in queries]
        return pandas.DataFrame({"title": titles, "neighbours": neighbours, "reason": reason})


def _query(row: int, values: dict[str, Any]) -> Query:
    """A query of one row, in which None and NaN are what is not known."""
    given: dict[str, Any] = {
        name: value for name, value in values.items() if isinstance(value, str) or not pandas.isna(value)
    }
    hour: Any = given.pop("hour", None)
    title = values["title"]
    if not isinstance(title, str) or not title.strip():
        raise _invalid(f"row {row}: a title is a text that is not empty, not {title!r}")
    for name, value in given.items():
        if not isinstance(value, str):
            raise _invalid(f"row {row}: a {name} is a text, not {value!r}")
    whole: Any = int(hour) if isinstance(hour, float) and hour.is_integer() else hour  # beside nulls a float
    return Query(**given, hour=whole)


def _invalid(text: str) -> MlflowException:
    return MlflowException.invalid_parameter_value(text)


def refuse_ignored(record: logging.LogRecord) -> bool:
    """A log filter that refuses parameters which MLflow would drop with a warning; it has no option for that.

    An exception in a filter leaves the call that logs: the answer is 400.
    """
    if IGNORED in (message := record.getMessage()):
        named = message.partition("[")[2].partition("]")[0]
        raise _invalid(f"unknown parameters [{named}]; known are {sorted(PARAMS)}")
    return True


set_model(TitleModel())
