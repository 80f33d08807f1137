"""Predicts categories of titles from the vote of their nearest training titles and from a linear model."""
