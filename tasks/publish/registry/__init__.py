"""Registers models in MLflow; the gate selects the champion."""
