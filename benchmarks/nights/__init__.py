"""Benchmarks of complete nightly runs and of the server."""
