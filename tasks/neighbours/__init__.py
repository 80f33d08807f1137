"""Nearest neighbours: one exact kernel, an index on top of it, and SimHash."""
