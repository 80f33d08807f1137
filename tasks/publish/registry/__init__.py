"""Registers models in MLflow and selects the champion by the gate."""
