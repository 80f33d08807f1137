"""Encoders, which compute the vector of a title from the embedding rows of its tokens."""

from tasks.encoder.bag import Bag

__all__ = ["Bag", "Encoder"]

Encoder = Bag
