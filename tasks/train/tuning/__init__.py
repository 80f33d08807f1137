"""Compares optimizers on the same titles and batches, at several learning rates and vector sizes."""
