"""Lexicon to Vectors: a unit-norm vector a title."""
