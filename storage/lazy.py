"""Imports PyTorch when it is first used, not when a module that uses it is imported.

Settings contain the strategies of all stages. A run whose stages are unchanged, or a command that prints
settings, imports the strategies but computes no tensor. It saves 1.6 of 5.9 CPU seconds.

Modules that settings import write ``from storage.lazy import torch`` and, for annotations, import ``Tensor``.
At module level, they use no other attribute of torch, and they quote annotations such as "torch.device".
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
