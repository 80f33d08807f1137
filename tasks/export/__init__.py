"""Writes the corpus and the vectors in the formats of other programs."""
