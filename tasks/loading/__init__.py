"""Loads training batches of a corpus with any number of workers."""
