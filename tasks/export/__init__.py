"""Exports titles and vectors in the formats of other programs."""
