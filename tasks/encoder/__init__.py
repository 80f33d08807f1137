"""Encoders from token ids to title vectors. They are independent of where rows are stored."""

from tasks.encoder.bags import Bag

__all__ = ["Bag", "Encoder"]

Encoder = Bag
