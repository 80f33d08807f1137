"""Provides type annotations of arrays with dtype and shape, such as ``Float[Tensor, "titles dim"]``.

Tests verify the annotations at run time (tests/conftest.py installs jaxtyping's import hook with beartype).
Outside of tests, ``Float[Tensor, "titles dim"]`` is ``Tensor``, because importing jaxtyping takes 0.05 s.
The following axis names have the same meaning in all modules: titles, tokens, dim, unique, neighbours,
queries, bags, chars, labels, any.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float, Float32, Int, Int8, Int32, Int64, UInt8
else:

    class _ArrayType:
        def __class_getitem__(cls, parameters: tuple[type, str]) -> type:
            return parameters[0]

    Bool = Float = Float32 = Int = Int8 = Int32 = Int64 = UInt8 = _ArrayType

__all__ = ["Bool", "Float", "Float32", "Int", "Int8", "Int32", "Int64", "UInt8"]
