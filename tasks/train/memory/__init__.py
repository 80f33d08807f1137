"""Key-value memory for titles of rare categories (Kaiser et al. 2017). A slot stores a vector and a label."""

from tasks.train.memory.bank import EMPTY, Memory, WriteResult
from tasks.train.memory.rules import AlwaysUpdate, HitOrMiss, Rule

__all__ = ["EMPTY", "AlwaysUpdate", "HitOrMiss", "Memory", "Rule", "WriteResult"]
