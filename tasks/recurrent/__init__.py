"""Recurrent string encoder: a recurrent network over a table of character embeddings, and its training loop.

The package depends on torch and NumPy only.
"""
