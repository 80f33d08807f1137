"""Trains linear models and matrix factorisations with compiled loops over sparse samples.

Weights are float32 (features, labels). A row contains the weights of one feature for all labels, next to each
other in memory. A step reads and changes only the rows of the features of its sample.
"""
