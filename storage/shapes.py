"""Array annotations with dtype and shape: ``Float[Tensor, "titles dim"]``.

Tests check them (tests/conftest.py installs jaxtyping's import hook with beartype). Where jaxtyping is not
installed, as on GPU machines, they stand for the array type alone. Axis names, one meaning each: titles,
tokens, dim, unique, neighbours, queries, bags, chars, labels, any.
"""

from typing import TYPE_CHECKING

try:
    from jaxtyping import Bool, Float, Float32, Int, Int8, Int32, Int64, UInt8
except ImportError:
    if not TYPE_CHECKING:

        class _ArrayOnly:
            def __class_getitem__(cls, parameters: tuple[type, str]) -> type:
                return parameters[0]

        Bool = Float = Float32 = Int = Int8 = Int32 = Int64 = UInt8 = _ArrayOnly

__all__ = ["Bool", "Float", "Float32", "Int", "Int8", "Int32", "Int64", "UInt8"]
