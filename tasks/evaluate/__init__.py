"""Stage evaluate: scores title vectors and baselines on held-out titles, and the agreement of clusters."""
