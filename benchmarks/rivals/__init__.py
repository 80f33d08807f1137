"""Rivals in learning title vectors: each is given the same titles, the same tokens and the same number of
dimensions.
"""
