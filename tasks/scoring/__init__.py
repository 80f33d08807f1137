"""Evaluation protocols, metrics and confidence intervals of category predictors."""
