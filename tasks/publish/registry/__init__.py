"""The model in MLflow's registry: its versions, and the gate that decides which one is the champion."""
