"""Vectors to Clustering: groups without k, with noise."""
