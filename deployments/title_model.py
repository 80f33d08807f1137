"""What ``mlflow models serve`` runs: titles in, the nearest titles of the guide out.

MLflow keeps this file with the model (models from code) together with the few files of ours that it imports, so a served
model needs no checkout. A request::

    curl -H 'Content-Type: application/json' http://127.0.0.1:5000/invocations \
      -d '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}, "params": {"k": 3}}'

The answer has one row a title::

    {"predictions": [{"title": …, "neighbours": [{"title", "cosine", "categories", "channels"}], "reason": null}]}

Of a title of which nothing is known, ``neighbours`` is null and ``reason`` says so.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from typing import Any

import pandas
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from tasks.neighbours.search import TitleSearch, nothing_known

PARAMS = {"k"}
IGNORED = f"are ignored for inference. Supported params are: {PARAMS}"  # MLflow's warning, of models with these parameters
EXAMPLE = '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}}'


class TitleModel(PythonModel):
    """Opens the model folder once, answers from its memory maps."""

    def load_context(self, context: PythonModelContext) -> None:
        """Opens the folder that was logged as the artifact ``model``."""
        self.search = TitleSearch.open(context.artifacts["model"])
        logging.getLogger("mlflow.models.utils").addFilter(refuse_ignored)
        if told := self.search.told_recall():
            print(told, file=sys.stderr)

    def predict(  # pyright: ignore[reportIncompatibleMethodOverride]  (MLflow's own has no annotation, read as None)
        self, context: PythonModelContext, model_input: pandas.DataFrame, params: dict[str, Any] | None = None
    ) -> pandas.DataFrame:
        """Finds the neighbours of each title.

        Args:
            context: Unused; MLflow passes it.
            model_input: A column ``title``.
            params: ``k``, neighbours a title, 1 to 1000 (default 10).

        Returns:
            The columns title, neighbours (a list of dicts with title, cosine, categories, channels, or None where nothing is known of the
            title) and reason (why there are none, else None), one row a title.

        Raises:
            MlflowException: No such column, a title that is no text, an unknown parameter, or k out of bounds: a served model answers 400.
        """
        if unknown := set(params or {}) - PARAMS:
            raise MlflowException.invalid_parameter_value(
                f"unknown parameters {sorted(unknown)}; known are {sorted(PARAMS)}"
            )
        frame = pandas.DataFrame(model_input)
        if "title" not in frame.columns:
            raise MlflowException.invalid_parameter_value(f"expected a column 'title', got {list(map(str, frame.columns))}; send {EXAMPLE}")
        titles = frame["title"].tolist()
        for row, title in enumerate(titles):
            if not isinstance(title, str) or not title.strip():
                raise MlflowException.invalid_parameter_value(f"row {row}: a title is a text that is not empty, not {title!r}")
        try:
            found = self.search.similar_many(titles, int((params or {}).get("k", 10))) if titles else []
        except ValueError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from error
        neighbours = [
            None if nearest is None else [dataclasses.asdict(neighbour) for neighbour in nearest]
            for nearest in found
        ]
        reasons = [
            nothing_known(title) if nearest is None else None
            for title, nearest in zip(titles, found, strict=True)
        ]
        return pandas.DataFrame(
            {"title": titles, "neighbours": neighbours, "reason": pandas.Series(reasons, dtype=object)}
        )


def refuse_ignored(record: logging.LogRecord) -> bool:
    """A log filter that refuses parameters which MLflow, with a warning, would drop before ``predict`` sees them.

    MLflow has no option for that. An exception in a filter leaves the call that logs: the answer is 400.

    Raises:
        MlflowException: The record is that warning.
    """
    message = record.getMessage()
    if IGNORED in message:
        named = message.partition("[")[2].partition("]")[0]
        raise MlflowException.invalid_parameter_value(
            f"unknown parameters [{named}]; known are {sorted(PARAMS)}"
        )
    return True


set_model(TitleModel())
