"""Benchmarks of reading guides and filling in what they omit."""
