"""Plots of a run from its artifacts."""
