"""Rows start by chance alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor

from tasks.form import FORM
from tasks.train.initial.held import Held


@dataclass(frozen=True, kw_only=True)
class Scattered:
    """Every row where chance put it."""

    __pydantic_config__ = FORM
    name: Literal["scattered"] = "scattered"

    def place_(self, rows: Tensor, corpus_folder: Path) -> Held:
        """Puts rows where they start, in place.

        Args:
            rows: float32 (tokens, dim), drawn by chance.
            corpus_folder: Of the Corpus they belong to.

        Returns:
            Which of them were put elsewhere, and how they are held there.
        """
        return Held.nothing()
