"""Loads training batches from a Corpus with any number of worker processes."""
