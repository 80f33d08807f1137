"""What a block is worth: the paired difference of the preset and the preset without it.

For each held-out title of each fold, the quality (mean of "its top label is right" and precision at 10, as
the gate has it; of clusters the title's B-cubed F) with the block minus that without it, both means over the
seeds. A figure is the mean over titles and folds; its interval, 1.96 standard errors, comes from a bootstrap
that draws families, each with its titles of all folds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from storage.formats.answers import CLUSTERS
from tasks.ablate.blocks import Block
from tasks.scoring.folds import RESAMPLES, Answer, Answers, Figure, pool_values
from tasks.scoring.protocols import FORMS, PROTOCOLS

CELLS = [(form, protocol) for protocol in PROTOCOLS for form in FORMS]
AGREEMENT = (CLUSTERS, CLUSTERS)
OVERALL, SHOWS, OOV = ("all", "all"), ("all", "unseen_show"), ("all", "oov")
Folds = Sequence[Sequence[Answers]]  # of each fold the answers of each seed
Columns = tuple[np.ndarray, ...]  # quality with the block, without it, the family, and oov


@dataclass(frozen=True)
class Effect:
    """A block, and by (form, protocol) what it is worth; OVERALL is the mean of all held-out answers, SHOWS
    that of both forms on shows never seen, OOV that of both on titles with a word never seen.
    """

    block: Block
    figures: dict[tuple[str, str], Figure]
    with_it: float  # mean quality of all held-out answers with the block, and without
    without: float

    @property
    def overall(self) -> Figure:
        """What the effects are sorted by."""
        return self.figures[OVERALL]

    @property
    def pays(self) -> bool | None:
        """Whether it is worth more than nothing; False where less, None where that cannot be told."""
        low, high = self.overall.interval
        return True if low > 0 else False if high < 0 else None


def measure_effect(block: Block, base: Folds, other: Folds, resamples: int = RESAMPLES) -> Effect:
    """The effect of a block from the answers with it (``base``) and without it (``other``)."""
    cells = [key for key in (*CELLS, AGREEMENT) if key in base[0][0]]
    kept = {key: _pairs(key, base, other) for key in cells}
    everything = _join(kept.values())
    kept |= {SHOWS: _join(own for key, own in kept.items() if key[1] == SHOWS[1]), OVERALL: everything}
    kept[OOV] = tuple(column[everything[3].astype(bool)] for column in everything)
    figures = {}
    for key, (with_it, without, family, _) in kept.items():
        figures[key] = pool_values({"worth": with_it - without}, family, resamples)["worth"]
    return Effect(block, figures, float(everything[0].mean()), float(everything[1].mean()))


def _pairs(key: tuple[str, str], base: Folds, other: Folds) -> Columns:
    parts = []
    for with_it, without in zip(base, other, strict=True):
        one, two = ([own[key] for own in seeds if key in own] for seeds in (with_it, without))
        if one and two:
            parts.append((_mean(one), _mean(two), one[0].family, one[0].oov))
            if not np.array_equal(one[0].family, two[0].family):
                found = f"other titles of {key[1]} are held out without the block than with it"
                raise ValueError(f"{found}; a block must leave tokenize.splits and the labels as they are")
    return _join(parts)


def _join(parts: Iterable[Columns]) -> Columns:
    nothing = (np.zeros(0),) * 4
    return tuple(np.concatenate(column) for column in zip(nothing, *parts, strict=True))


def _mean(answers: Sequence[Answer]) -> np.ndarray:
    return np.mean([own.quality for own in answers], axis=0)


def sort_effects(effects: Sequence[Effect]) -> list[Effect]:
    """By falling worth, blocks of clusters last."""
    return sorted(effects, key=lambda effect: (effect.block.is_of_clusters, -effect.overall.value))
