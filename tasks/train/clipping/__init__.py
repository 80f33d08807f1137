"""What is done to a step's gradient before a rule sees it: the family of clippings.

A clipping works on all gradients of a step together: gathered rows and dense parameters, whatever their rules.
"""

from tasks.train.clipping.by_norm import ClipByNorm
from tasks.train.clipping.by_value import ClipByValue
from tasks.train.clipping.none import NoClipping

__all__ = ["ClipByNorm", "ClipByValue", "Clipping", "NoClipping"]

Clipping = NoClipping | ClipByNorm | ClipByValue
