"""The comparison of optimizers: same titles, same batches, a few learning rates, several sizes."""
