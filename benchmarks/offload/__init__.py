"""Benchmarks of tables larger than GPU memory."""
