"""Is it any good: k-NN against held-out categories, agreement of clusters, the gate."""
