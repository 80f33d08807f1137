"""Compiled functions and numba's cache."""

import pickle
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tasks.compiled import compiled

numba = pytest.importorskip("numba")


class Pair(NamedTuple):
    """Argument type that the index names."""

    first: np.ndarray
    second: np.ndarray


def test_an_index_with_a_type_that_was_renamed_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def add(pair):
        return (pair.first + pair.second).sum()

    pair = Pair(np.arange(3.0), np.ones(3))
    assert compiled(add)(pair) == 6
    (index,) = tmp_path.rglob("*.nbi")
    module = sys.modules[__name__]
    with monkeypatch.context() as renamed:
        renamed.delattr(module, "Pair")
        with index.open("rb") as file:
            pickle.load(file)  # numba's version
            with pytest.raises(AttributeError, match="Pair"):
                pickle.loads(file.read())
        compiled.cache_clear()
        assert compiled(add)(Renamed(*pair)) == 6


class Renamed(NamedTuple):
    """The same type with another name."""

    first: np.ndarray
    second: np.ndarray
