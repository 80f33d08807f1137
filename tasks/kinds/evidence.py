"""What guides state about the kinds of each title: labels for training, and evidence for predictions.

A title states a kind if more than half of its airings that have categories state it. It is an example without
the kind (label 0) if its categories state other kinds only; a title whose categories state nothing is unknown
(label -1), because many guides mark only some of their films. A film is unknown for the kinds that films
exclude: a guide with "Movies, Sports" means a film about sport.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from storage.shapes import Bool, Float, Int
from tasks.kinds.kinds import KINDS, combine
from tasks.kinds.names import stated_kinds

_FILM, _SERIES, _CHILDREN, _OTHER = (KINDS.index(kind) for kind in ("film", "series", "children", "other"))


@dataclass(frozen=True)
class Evidence:
    """What is known about the kinds of titles.

    Attributes:
        shares: Share of the airings with categories that state each kind.
        has_categories: Whether some airing has categories.
        numbered: Share of airings with an episode number.
    """

    shares: Float[np.ndarray, "titles kinds"]
    has_categories: Bool[np.ndarray, " titles"]
    numbered: Float[np.ndarray, " titles"]

    @property
    def stated(self) -> Bool[np.ndarray, "titles kinds"]:
        """Kinds that most airings state."""
        return self.shares > 0.5

    @property
    def is_numbered(self) -> Bool[np.ndarray, " titles"]:
        """Titles of which most airings have an episode number."""
        return self.numbered > 0.5

    def labels(self) -> Int[np.ndarray, "titles kinds"]:
        """Returns 1 for a title of the kind, 0 for a title of other kinds, -1 if unknown."""
        stated, some = self.stated, self.shares > 0
        is_example = stated.any(axis=1) | self.is_numbered
        labels = np.where(stated, 1, np.where(is_example[:, None] & ~some, 0, -1))
        is_series = self.is_numbered & ~some[:, _FILM]
        labels[is_series, _SERIES] = 1
        labels[is_series, _OTHER] = np.minimum(labels[is_series, _OTHER], 0)
        ambiguous = stated[:, _FILM][:, None] & (np.arange(len(KINDS)) != _FILM)
        ambiguous[:, [_SERIES, _CHILDREN, _OTHER]] = False
        labels[ambiguous] = -1
        return labels.astype(np.int8)


def gather_evidence(structure: pa.Table, categories: pa.Table) -> Evidence:
    """Counts what categories state about each title.

    Args:
        structure, categories: Results of ``title_structure`` and ``title_categories``
            (storage/catalogue/structure.py).
    """
    titles = len(structure)
    counts, totals = np.zeros((titles, len(KINDS))), np.zeros(titles)
    for title, texts, numbered, airings in zip(*(column.to_pylist() for column in categories.columns)):
        totals[title] += airings
        for kind in combine(stated_kinds(texts), numbered):
            counts[title, KINDS.index(kind)] += airings
    numbered = structure["numbered"].to_numpy() / structure["airings"].to_numpy()
    return Evidence(counts / np.maximum(totals, 1)[:, None], totals > 0, numbered)
