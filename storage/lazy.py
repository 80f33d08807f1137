"""Imports PyTorch at its first use instead of its import statement.

Settings contain the strategies of all stages. A run whose stages are unchanged, or a command that prints
settings, imports the strategies but uses no tensor, and saves 1.6 of 5.9 CPU seconds.

Modules that settings import use ``from storage.lazy import torch`` and, in annotations, ``Tensor``. At module
level, they use no other attribute of torch, and quote annotations such as "torch.device".
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:  # as in shapes.py: tests check the types of arguments
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
else:

    class _LazyModule:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(importlib.import_module(self._name), attribute)
            setattr(self, attribute, value)  # the next use takes no longer than with the module itself
            return value

    torch, nn, functional = map(_LazyModule, ("torch", "torch.nn", "torch.nn.functional"))

    class Tensor:
        """Stands for torch.Tensor in annotations. ``isinstance`` requires torch.Tensor."""


__all__ = ["Tensor", "functional", "nn", "torch"]
