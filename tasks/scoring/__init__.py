"""Scores predictors of categories on held-out titles: protocols, metrics and confidence intervals."""
