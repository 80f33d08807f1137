"""Runs a trial of an ablation: trains a model with changed settings, and predicts held-out titles."""
