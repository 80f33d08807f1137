"""Benchmarks of training objectives other than the default, and of small models."""
