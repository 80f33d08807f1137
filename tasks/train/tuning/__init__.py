"""Compares optimizers on the same titles and batches, and searches for good optimizers and learning rates."""
