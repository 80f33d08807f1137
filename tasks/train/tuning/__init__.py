"""Compares optimizers on the same titles and batches, and searches learning rates, also with populations."""
