"""Registers models in MLflow, and decides which version is the champion (the served model)."""
