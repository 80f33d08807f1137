"""Key-value memory for titles of rare categories. A slot stores a vector and a label (Kaiser et al. 2017)."""

from tasks.train.memory.bank import EMPTY, Memory, WriteResult
from tasks.train.memory.rules import AlwaysUpdate, HitOrMiss, Rule

__all__ = ["EMPTY", "AlwaysUpdate", "HitOrMiss", "Memory", "Rule", "WriteResult"]
