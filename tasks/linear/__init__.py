"""Trains linear models and matrix factorisations with compiled loops over sparse samples.

Weights are float32 (features, labels): a row has the weights of one feature for all labels and is contiguous
in memory. A step reads and changes only the rows of the features that its sample contains.
"""
