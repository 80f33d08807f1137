"""Encodes strings by a recurrent network that reads character embeddings, and trains this network.

The package depends on torch and NumPy only.
"""
