"""Benchmarks of recommendations."""
