"""Where training computes: the device, the threads, and the precision of the dense step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import torch

Precision = Literal["float32", "bfloat16", "auto"]


def choose_device(name: str) -> torch.device:
    """The device that a setting names; "auto" is the GPU where there is one.

    Raises:
        ValueError: No such device, or a CUDA device is asked for and there is none.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"train.device is {name!r}; it can be 'auto', 'cpu', 'cuda' or 'cuda:N'")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"train.device is {name!r}, but torch sees no CUDA device here; use 'auto' or 'cpu'")
    return device


@contextmanager
def use_threads(number: int) -> Iterator[None]:
    """Torch with that many CPU threads (0: as it is); what was set before comes back."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def mixed_precision(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Matrix products of the dense step in bfloat16 where asked for; rows, their state and their steps stay float32.

    Args:
        device: Where the step is computed.
        precision: "auto" is bfloat16 on a GPU that has it, else float32.
    """
    half = precision == "bfloat16" or (precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported())
    return torch.autocast(device.type, dtype=torch.bfloat16) if half else nullcontext()
