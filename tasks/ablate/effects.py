"""Computes the effect of a block: the quality with the block minus the quality without it.

The quality of a held-out title is the mean of its accuracy and precision at 10, as in the gate, or its
B-cubed F for blocks that concern clusters. Qualities are averaged over the seeds of training. An effect is
the mean difference over titles and folds (splits of the guide). Its interval is ± 1.96 standard errors, which
come from a bootstrap over families. A family consists of the titles with the same first word, in all folds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from storage.formats.answers import CLUSTERS
from tasks.ablate.blocks import AblationBlock
from tasks.scoring.folds import RESAMPLES, Figure, ScoresByCell, TitleScores, mean_columns
from tasks.scoring.protocols import FORMS, PROTOCOLS

# Keys of figures are (input form, held-out set).
CELLS = [(form, protocol) for protocol in PROTOCOLS for form in FORMS]
AGREEMENT = (CLUSTERS, CLUSTERS)  # key of the B-cubed F of clusters
OVERALL, SHOWS, OOV = ("all", "all"), ("all", "unseen_show"), ("all", "oov")
Folds = Sequence[Sequence[ScoresByCell]]  # predictions by fold and seed
# Per title: quality with the block, quality without it, family, and whether it has an unseen word.
Columns = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Effect:
    """Effect of a block: the mean quality with the block minus the mean quality without it.

    The keys of ``figures`` are (form, protocol) and three additional keys: OVERALL for the mean over all
    held-out titles and both forms, SHOWS for unseen franchises, and OOV for titles with an unseen word.
    """

    block: AblationBlock
    figures: dict[tuple[str, str], Figure]
    with_it: float  # mean quality of all held-out titles with the block
    without: float  # mean quality without the block

    @property
    def overall(self) -> Figure:
        """Mean effect over all held-out titles, by which effects are sorted."""
        return self.figures[OVERALL]

    @property
    def pays(self) -> bool | None:
        """True if the effect is positive, False if it is negative, None if its interval contains zero."""
        low, high = self.overall.interval
        return True if low > 0 else False if high < 0 else None


def measure_effect(block: AblationBlock, base: Folds, ablated: Folds, resamples: int = RESAMPLES) -> Effect:
    """Computes the effect of a block from predictions with the block and without it.

    Args:
        block: Block.
        base: Predictions of the trials with the block, by fold and seed.
        ablated: Predictions of the trials without the block, by fold and seed.
        resamples: Number of bootstrap resamples.
    """
    cells = [key for key in (*CELLS, AGREEMENT) if key in base[0][0]]
    pairs = {key: _pair_columns(key, base, ablated) for key in cells}
    overall_pairs = _concatenate(pairs.values())
    pairs[SHOWS] = _concatenate([columns for key, columns in pairs.items() if key[1] == SHOWS[1]])
    pairs[OVERALL] = overall_pairs
    pairs[OOV] = tuple(column[overall_pairs[3].astype(bool)] for column in overall_pairs)
    figures = {}
    for key, (with_it, without, family, _) in pairs.items():
        figures[key] = mean_columns({"worth": with_it - without}, family, resamples)["worth"]
    return Effect(block, figures, float(overall_pairs[0].mean()), float(overall_pairs[1].mean()))


def _pair_columns(key: tuple[str, str], base: Folds, ablated: Folds) -> Columns:
    """Returns the columns of the titles of one held-out set; raises a ValueError if the titles differ."""
    parts = []
    for with_it, without in zip(base, ablated, strict=True):
        present, absent = ([cells[key] for cells in seeds if key in cells] for seeds in (with_it, without))
        if present and absent:
            family, oov = present[0].family, present[0].oov
            parts.append((_mean_quality(present), _mean_quality(absent), family, oov))
            if not np.array_equal(family, absent[0].family):
                raise ValueError(
                    f"other titles of {key[1]} are held out without the block than with the block; a "
                    "block must leave tokenize.splits and the labels as they are"
                )
    return _concatenate(parts)


def _concatenate(parts: Iterable[Columns]) -> Columns:
    """Concatenates columns of several folds or held-out sets."""
    no_titles = (np.zeros(0),) * 4
    return tuple(np.concatenate(column) for column in zip(no_titles, *parts, strict=True))


def _mean_quality(answers: Sequence[TitleScores]) -> np.ndarray:
    """Returns the mean quality of each title over several trainings."""
    return np.mean([answer.quality for answer in answers], axis=0)


def sort_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Sorts effects in descending order, with blocks of clusters last."""
    return sorted(effects, key=lambda effect: (effect.block.is_of_clusters, -effect.overall.value))
