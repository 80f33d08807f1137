"""What ``mlflow models serve`` runs: titles in, the nearest titles of the guide out.

MLflow keeps this file with the model (models from code) together with the few files of ours that it imports, so a served
model needs no checkout. A request::

    curl -H 'Content-Type: application/json' http://127.0.0.1:5000/invocations \
      -d '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}, "params": {"k": 3}}'

The answer has one row a title: ``{"predictions": [{"title": …, "neighbours": [{"title", "cosine", "categories", "channels"}]}]}``.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pandas
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from tasks.neighbours.search import TitleSearch

EXAMPLE = '{"dataframe_split": {"columns": ["title"], "data": [["Cooking with Nigella"]]}}'


class TitleModel(PythonModel):
    """Opens the model folder once, answers from its memory maps."""

    def load_context(self, context: PythonModelContext) -> None:
        """Opens the folder that was logged as the artifact ``model``."""
        self.search = TitleSearch.open(context.artifacts["model"])
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
            The columns title and neighbours (a list of dicts with title, cosine, categories, channels), one row a title.

        Raises:
            MlflowException: No such column, a title that is no text or of which nothing is known, or k out of bounds: a served model answers 400.
        """
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
        return pandas.DataFrame({"title": titles, "neighbours": [[dataclasses.asdict(neighbour) for neighbour in nearest] for nearest in found]})


set_model(TitleModel())
