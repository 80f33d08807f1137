"""Stage evaluate: scores of the space and of the baselines on held-out titles, and cluster agreement."""
