"""Benchmarks of guides for players."""
