"""Predicts categories of titles by the vote of their nearest training titles and by a linear model."""
