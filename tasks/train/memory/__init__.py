"""Memory of rare events: slots with a key and a label, written by queries (Kaiser et al. ICLR 2017)."""

from tasks.train.memory.bank import EMPTY, Memory, Written
from tasks.train.memory.rules import AlwaysUpdate, HitOrMiss, Rule

__all__ = ["EMPTY", "AlwaysUpdate", "HitOrMiss", "Memory", "Rule", "Written"]
