"""Stage evaluate: scores title vectors and baselines on held-out titles, and clusters by their labels."""
