"""Linear models and matrix factorisation: the simplest that can be learnt, at the speed of the hardware.

Weights are float32 of shape (features, labels): a row holds what one feature says of every label, so that a
sample reads and moves only the rows of its own features, each as one run of memory.
"""
