"""Batches of a corpus, in any order, by any number of workers."""
