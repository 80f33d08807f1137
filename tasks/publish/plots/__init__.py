"""Plots of a run, put together from its artifacts."""
