"""Scores predictors of categories on held-out titles: held-out sets, metrics and confidence intervals."""
