"""Token ids to a title's vector: the family of encoders. An encoder never knows where rows live."""

from tasks.encoder.bags import Bag

__all__ = ["Bag", "Encoder"]

Encoder = Bag
