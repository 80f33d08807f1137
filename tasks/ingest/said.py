"""What programmes say, as a feed has it: columns of text, neither cleaned nor typed yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Said:
    """One row a programme in every column; lists of lists as values and the row at which each programme's begin.

    Attributes:
        description: None where details.py has it.
        attributes: Of the programme's element, as JSON, but for those that have columns.
    """

    channel: pa.StringArray
    start: pa.StringArray
    stop: pa.StringArray
    title: pa.StringArray
    title_language: pa.StringArray
    sub_title: pa.StringArray
    sub_title_language: pa.StringArray
    date: pa.StringArray
    description: pa.StringArray | None
    description_language: pa.StringArray
    categories: pa.StringArray
    category_languages: pa.StringArray
    category_offsets: np.ndarray
    episode_numbers: pa.StringArray
    episode_systems: pa.StringArray
    episode_offsets: np.ndarray
    attributes: pa.StringArray

    def __len__(self) -> int:
        return len(self.channel)


def concat(parts: Sequence[Said]) -> Said:
    """The parts as one."""
    if len(parts) == 1:
        return parts[0]
    joined = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Said)}
    for offsets, values in (("category_offsets", "categories"), ("episode_offsets", "episode_numbers")):
        firsts = np.cumsum([0, *map(len, joined[values])])
        joined[offsets] = [each + first for each, first in zip(joined[offsets], firsts)]
    return Said(**{name: np.concatenate(each) if name.endswith("_offsets") else pa.concat_arrays(each) for name, each in joined.items()})
