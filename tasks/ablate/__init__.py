"""Measures the effect of each building block by removing or replacing it, on the same folds and seeds."""
