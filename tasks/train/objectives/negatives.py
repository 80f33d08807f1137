"""Which groups of a batch push a title away: all, the hardest, or the hardest that is not nearer than its own.

References:
    Schroff, Kalenichenko, Philbin. FaceNet. CVPR 2015, section 3.2: semi-hard negatives are farther than the positive;
    the hardest of all may collapse training early.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Negatives = Literal["all", "hardest", "semi_hard"]


def choose_negatives(scores: Tensor, own: Tensor, excluded: Tensor, negatives: Negatives) -> Tensor:
    """Marks each title's negatives.

    Args:
        scores: (titles, groups).
        own: (titles, 1): the score with the title's own group.
        excluded: bool (titles, groups): its own group, and those that may not be negatives.
        negatives: Which of the others count.

    Returns:
        bool (titles, groups); a row without a mark where nothing qualifies.
    """
    allowed = ~excluded
    if negatives == "all":
        return allowed
    if negatives == "semi_hard":
        allowed = allowed & (scores < own)
    hardest = scores.detach().masked_fill(~allowed, float("-inf")).argmax(1, keepdim=True)
    return torch.zeros_like(allowed).scatter_(1, hardest, True) & allowed
