"""Benchmarks of nearest neighbours, clustering and the map layout."""
