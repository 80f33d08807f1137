"""Benchmarks of the quality of title vectors and of lists of similar titles."""
