"""Benchmarks of training, its runners and its data loader."""
