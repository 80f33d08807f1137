"""Stage evaluate: scores of the title vectors and of the baselines on held-out titles, and of clusters."""
