"""MLflow model for ``mlflow models serve``, which returns the nearest titles of the guide for each title.

MLflow stores this file and the files that it imports with the model (models from code), so serving needs no
checkout. A request::

    curl -H 'Content-Type: application/json' http://127.0.0.1:5000/invocations \
      -d '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}, "params": {"k": 3}}'

Optional columns, with nulls allowed, are ``description``, ``channel`` (name or id) and ``hour`` (0 to 23,
local). The answer has one row per title, ``{"predictions": [{"title", "neighbours": [{"title", "cosine",
"categories", "channels", "editions"}], "reason"}]}``. If a title cannot be answered, ``neighbours`` is null
and ``reason`` says why.
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
# part of MLflow's warning about other parameters
IGNORED_PARAMS_TEXT = f"are ignored for inference. Supported params are: {PARAMS}"
EXAMPLE = '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}}'


class TitleModel(PythonModel):
    """MLflow model that finds the nearest titles in the memory-mapped files of a model folder."""

    def load_context(self, context: PythonModelContext) -> None:
        """Opens the model folder that was logged as the artifact ``model``."""
        self.search = TitleSearch.open(context.artifacts["model"])
        logging.getLogger("mlflow.models.utils").addFilter(reject_unknown_params)
        if note := self.search.recall_note():
            print(note, file=sys.stderr)

    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]  (MLflow's has no annotation, read as None)
        self, context: PythonModelContext, model_input: pandas.DataFrame, params: dict[str, Any] | None = None
    ) -> pandas.DataFrame:
        """Returns the ``k`` nearest titles (1 to 1000, default 10) of the title in each row.

        Raises:
            MlflowException: The column ``title`` is missing, a title is empty, a description is not a string,
                a parameter is unknown, or k is out of bounds; the served model answers 400.
        """
        if unknown_params := set(params or {}) - PARAMS:
            raise _invalid_request(f"unknown parameters {sorted(unknown_params)}; expected {sorted(PARAMS)}")
        frame = pandas.DataFrame(model_input)
        if "title" not in frame.columns:
            raise _invalid_request(
                f"expected a column 'title', got {[*map(str, frame.columns)]}; send {EXAMPLE}"
            )
        columns = [name for name in COLUMNS if name in frame.columns]
        rows = zip(*(frame[name].tolist() for name in columns), strict=True)
        queries = [_query(number, dict(zip(columns, row, strict=True))) for number, row in enumerate(rows)]
        try:
            results = self.search.similar_many(queries, int((params or {}).get("k", 10)))
        except ValueError as error:
            raise _invalid_request(str(error)) from error
        neighbours = [
            None if isinstance(result, SearchError) else [*map(dataclasses.asdict, result)]
            for result in results
        ]
        reasons = [str(result) if isinstance(result, SearchError) else None for result in results]
        reason = pandas.Series(reasons, dtype=object)
        titles = [query.title for query in queries]
        return pandas.DataFrame({"title": titles, "neighbours": neighbours, "reason": reason})


def _query(row: int, values: dict[str, Any]) -> Query:
    """Converts a row of a request to a query; None and NaN are missing values."""
    arguments: dict[str, Any] = {
        name: value for name, value in values.items() if isinstance(value, str) or not pandas.isna(value)
    }
    hour: Any = arguments.pop("hour", None)
    title = values["title"]
    if not isinstance(title, str) or not title.strip():
        raise _invalid_request(f"row {row}: expected a non-empty string as title, got {title!r}")
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise _invalid_request(f"row {row}: expected a string as {name}, got {value!r}")
    # a column with nulls contains floats
    local_hour: Any = int(hour) if isinstance(hour, float) and hour.is_integer() else hour
    return Query(**arguments, hour=local_hour)


def _invalid_request(text: str) -> MlflowException:
    return MlflowException.invalid_parameter_value(text)


def reject_unknown_params(record: logging.LogRecord) -> bool:
    """Log filter that raises an error for parameters that MLflow would ignore with a warning.

    MLflow has no option for this. The exception leaves MLflow's logging call, and the answer is 400.
    """
    if IGNORED_PARAMS_TEXT in (message := record.getMessage()):
        names = message.partition("[")[2].partition("]")[0]
        raise _invalid_request(f"unknown parameters [{names}]; expected {sorted(PARAMS)}")
    return True


set_model(TitleModel())
