"""Rows from one numbering of tokens to another: what a warm start does with yesterday's checkpoint.

Between nights a vocabulary only grows, and the old ids are the first of the new ones; a compaction numbers them anew. Both
are one array, ``remap.npy`` of the Vocabulary: the new id of each of the ancestor's, -1 where the token is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def remap_rows(old: Mapping[str, Tensor], new_ids: Tensor, fresh: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rows (and optimizer state, ``touched`` …) of known tokens at their new ids, all others as a new table starts.

    Args:
        old: Name to tensor, first axis old tokens: a checkpoint's ``rows``, ``state.*``, ``touched``.
        new_ids: int64 (old tokens,): the new id of each, -1 for those that are gone; else distinct.
        fresh: The same names, first axis new tokens: what each row is before it is learnt. Not changed.

    Returns:
        Name to tensor, first axis new tokens, in the type and on the device of ``fresh``.

    Raises:
        ValueError: Names, numbers of old tokens or shapes of a row differ, or two old tokens lead to one new id.
    """
    if old.keys() != fresh.keys():
        raise ValueError(f"the old table holds {sorted(old)}, the new one {sorted(fresh)}; a table of another rule cannot be carried over")
    (source,) = torch.nonzero(new_ids >= 0, as_tuple=True)
    target = new_ids[source]
    if len(torch.unique(target)) != len(target):
        raise ValueError("two old tokens lead to one new id; new_ids must be distinct where they are not -1")
    moved = {}
    for name, start in fresh.items():
        if len(old[name]) != len(new_ids) or old[name].shape[1:] != start.shape[1:]:
            raise ValueError(f"{name!r} is {tuple(old[name].shape)}, expected {(len(new_ids), *start.shape[1:])}: {len(new_ids)} old tokens, rows as in the new table")
        moved[name] = start.clone()
        moved[name][target.to(start.device)] = old[name][source].to(start)
    return moved
