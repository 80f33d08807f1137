"""Nearest neighbours: an exact kernel, exact and approximate indexes, and SimHash."""
