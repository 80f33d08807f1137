"""Encoders, which map token ids to title vectors, independently of where rows are stored."""

from tasks.encoder.bag import Bag

__all__ = ["Bag", "Encoder"]

Encoder = Bag
