"""Rules side by side on one corpus: the same titles, the same batches, a few learning rates, several sizes."""
