"""How many rows a cache of so many bytes holds."""

from __future__ import annotations

import math
import os

import torch
from torch import Tensor

from storage.tables.places import Starting
from storage.tables.records import Records

FREE_SHARE = 0.8  # the rest is the step's


def affordable_rows(rows: int, row: Tensor, rule: Starting, cache_bytes: int, device: torch.device, *, row_dtype: torch.dtype, state_dtype: torch.dtype) -> int:
    """Rows of the cache.

    Args:
        rows: Of the table.
        row: One of them, float32 (1, dim).
        rule: Whose state they have.
        cache_bytes: To spend; 0 is four fifths of what the device has free.
        device: Where the cache will be.
        row_dtype, state_dtype: As in Offloaded.

    Raises:
        ValueError: The states that stay on the device whole leave no room for a row.
    """
    state = rule.initial_state(row)
    records = Records.of(row, state, row_dtype, state_dtype)
    budget = cache_bytes or int(FREE_SHARE * free_bytes(device))
    whole = rows * sum(math.prod(state[name].shape[1:]) * state[name].dtype.itemsize for name in records.wide)
    fit = (budget - whole) // records.bytes_on_device()
    if fit < 1:
        raise ValueError(
            f"{budget:,} bytes hold no row of {records.bytes_on_device():,} bytes beside the {whole:,} bytes of row-wise state that stay on the device; "
            "give cache_bytes more, or take a rule without row-wise state"
        )
    return min(fit, rows)


def free_bytes(device: torch.device) -> int:
    """Memory that can still be had there; where the system does not say what is free (macOS), all there is."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
