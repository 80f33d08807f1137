"""Compares optimizers on the same titles and batches, and searches optimizers and learning rates."""
