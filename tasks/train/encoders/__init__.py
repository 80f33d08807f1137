"""Token ids to a title's vector: the family of encoders. An encoder never knows where rows live."""

from tasks.train.encoders.bag import Bag

__all__ = ["Bag", "Encoder"]

Encoder = Bag
