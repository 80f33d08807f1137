"""Benchmarks of linear models and matrix factorisation."""
