"""Benchmarks of reading guides and filling in missing categories and episode numbers."""
