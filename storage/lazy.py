"""Imports PyTorch when it is first used, not when a module that uses it is imported.

Settings contain the strategies of all stages. A run in which all stages are cached, or a command that prints
settings, imports the strategies but computes no tensor. The lazy import saves 1.6 of 5.9 CPU seconds of such
a run.

Modules that settings import write ``from storage.lazy import torch`` and, for annotations, import ``Tensor``.
At module level, they use no other attribute of torch, and they quote annotations such as "torch.device".
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:  # tests import jaxtyping, which needs the classes of torch
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
else:

    class _LazyModule:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(importlib.import_module(self._name), attribute)
            setattr(self, attribute, value)  # the next access does not call __getattr__
            return value

    torch, nn, functional = map(_LazyModule, ("torch", "torch.nn", "torch.nn.functional"))

    class Tensor:
        """Replaces torch.Tensor in annotations. It cannot be used with ``isinstance``."""


__all__ = ["Tensor", "functional", "nn", "torch"]
