"""MLflow model without answers, for tests of the registry."""

import mlflow
import pandas
from mlflow.pyfunc import PythonModel


class StandIn(PythonModel):
    def load_context(self, context):
        pass

    def predict(self, context, model_input: pandas.DataFrame, params=None) -> pandas.DataFrame:
        return model_input


mlflow.models.set_model(StandIn())
