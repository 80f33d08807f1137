"""Linear models and matrix factorisation with compiled loops over sparse samples.

Weights are float32 of shape (features, labels): a row holds the weights of one feature for all labels, so a
step reads and changes only the rows of the features of a sample, each contiguous in memory.
"""
