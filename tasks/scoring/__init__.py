"""k-NN protocols, metrics and intervals."""
