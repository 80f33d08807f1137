"""Effect of a block: the paired difference between the preset and the preset without the block.

The quality of a held-out title is the mean of top-label accuracy and precision at 10, as in the gate, or its
B-cubed F for blocks of clusters. For each title and fold, the difference of the means over the seeds is
computed. An effect is the mean of these differences, with an interval of ± 1.96 standard errors from a
bootstrap over families of titles, each with its titles of all folds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from storage.formats.answers import CLUSTERS
from tasks.ablate.blocks import AblationBlock
from tasks.scoring.folds import RESAMPLES, Figure, HeldOutPredictions, PredictionsByCell, pool_values
from tasks.scoring.protocols import FORMS, PROTOCOLS

CELLS = [(form, protocol) for protocol in PROTOCOLS for form in FORMS]
AGREEMENT = (CLUSTERS, CLUSTERS)
OVERALL, SHOWS, OOV = ("all", "all"), ("all", "unseen_show"), ("all", "oov")
Folds = Sequence[Sequence[PredictionsByCell]]  # by fold and seed
Columns = tuple[np.ndarray, ...]  # quality with the block, without it, the family, and oov


@dataclass(frozen=True)
class Effect:
    """The effect of a block by (form, protocol).

    ``figures`` has three additional keys: OVERALL is the mean over all held-out titles and both forms, SHOWS
    that over unseen franchises, and OOV that over titles with an unseen word.
    """

    block: AblationBlock
    figures: dict[tuple[str, str], Figure]
    with_it: float  # mean quality of all held-out titles with the block
    without: float  # mean quality without the block

    @property
    def overall(self) -> Figure:
        """The mean effect, by which the effects are sorted."""
        return self.figures[OVERALL]

    @property
    def pays(self) -> bool | None:
        """True if the effect is positive, False if it is negative, None if the interval contains zero."""
        low, high = self.overall.interval
        return True if low > 0 else False if high < 0 else None


def measure_effect(block: AblationBlock, base: Folds, other: Folds, resamples: int = RESAMPLES) -> Effect:
    """Computes the effect of a block from the predictions with it (``base``) and without it (``other``)."""
    cells = [key for key in (*CELLS, AGREEMENT) if key in base[0][0]]
    pairs = {key: _pairs(key, base, other) for key in cells}
    overall = _join(pairs.values())
    pairs[SHOWS] = _join([columns for key, columns in pairs.items() if key[1] == SHOWS[1]])
    pairs[OVERALL] = overall
    pairs[OOV] = tuple(column[overall[3].astype(bool)] for column in overall)
    figures = {}
    for key, (with_it, without, family, _) in pairs.items():
        figures[key] = pool_values({"worth": with_it - without}, family, resamples)["worth"]
    return Effect(block, figures, float(overall[0].mean()), float(overall[1].mean()))


def _pairs(key: tuple[str, str], base: Folds, other: Folds) -> Columns:
    parts = []
    for with_it, without in zip(base, other, strict=True):
        left, right = ([answers[key] for answers in seeds if key in answers] for seeds in (with_it, without))
        if left and right:
            parts.append((_mean(left), _mean(right), left[0].family, left[0].oov))
            if not np.array_equal(left[0].family, right[0].family):
                problem = f"other titles of {key[1]} are held out without the block than with the block"
                raise ValueError(f"{problem}; a block must leave tokenize.splits and the labels as they are")
    return _join(parts)


def _join(parts: Iterable[Columns]) -> Columns:
    nothing = (np.zeros(0),) * 4
    return tuple(np.concatenate(column) for column in zip(nothing, *parts, strict=True))


def _mean(answers: Sequence[HeldOutPredictions]) -> np.ndarray:
    return np.mean([answer.quality for answer in answers], axis=0)


def sort_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Sorts effects from the largest to the smallest, blocks of clusters last."""
    return sorted(effects, key=lambda effect: (effect.block.is_of_clusters, -effect.overall.value))
