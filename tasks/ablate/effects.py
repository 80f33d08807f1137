"""Computes the effect of a block: the quality with the block minus the quality without the block.

A block is a change of settings that removes or replaces a part of the model (blocks.py). The quality of a
held-out title is the mean of its accuracy and its precision at 10, which the gate compares, too. For blocks
that change settings of clusters, it is the B-cubed F of the title. Qualities are averaged over the seeds of
training. An effect is the mean difference over titles and folds (splits of the guide). The 95 % interval of
an effect is ± 1.96 standard errors, which are estimated by a bootstrap over families. A family consists of
the titles with the same first word, in all folds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from storage.formats.answers import CLUSTERS
from tasks.ablate.blocks import AblationBlock
from tasks.scoring.folds import RESAMPLES, Figure, ScoresByCell, TitleScores, mean_columns
from tasks.scoring.protocols import FORMS, PROTOCOLS

# A cell is a pair (input form, held-out set), by which the figures of an effect are stored.
CELLS = [(form, protocol) for protocol in PROTOCOLS for form in FORMS]
AGREEMENT = (CLUSTERS, CLUSTERS)  # cell of the B-cubed F of clusters
OVERALL, SHOWS, OOV = ("all", "all"), ("all", "unseen_show"), ("all", "oov")
Folds = Sequence[Sequence[ScoresByCell]]  # predictions by fold and seed
# Columns with one entry per title: quality with the block, quality without the block, family, and whether the
# title has an unseen word.
Columns = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Effect:
    """Effect of a block: the mean quality with the block minus the mean quality without the block.

    ``figures`` contains the effect for each cell, and for three larger sets of titles: OVERALL for all
    held-out titles in both forms, SHOWS for unseen franchises, and OOV for titles with an unseen word.
    """

    block: AblationBlock
    figures: dict[tuple[str, str], Figure]
    quality_with: float  # mean quality of all held-out titles with the block
    quality_without: float  # mean quality of all held-out titles without the block

    @property
    def overall(self) -> Figure:
        """Effect over all held-out titles, by which blocks are sorted."""
        return self.figures[OVERALL]

    @property
    def pays(self) -> bool | None:
        """True if the effect is positive, False if it is negative, None if its interval contains zero."""
        return self.overall.sign


def measure_effect(
    block: AblationBlock, base_folds: Folds, ablated_folds: Folds, resamples: int = RESAMPLES
) -> Effect:
    """Computes the effect of a block from predictions with the block and without the block.

    Args:
        block: The block that was removed.
        base_folds: Predictions of the trials with the block, by fold and seed.
        ablated_folds: Predictions of the trials without the block, by fold and seed.
        resamples: Number of bootstrap resamples.
    """
    cells = [cell for cell in (*CELLS, AGREEMENT) if cell in base_folds[0][0]]
    columns_by_cell = {cell: _pair_titles(cell, base_folds, ablated_folds) for cell in cells}
    overall = _concatenate(columns_by_cell.values())
    show_columns = [columns for cell, columns in columns_by_cell.items() if cell[1] == SHOWS[1]]
    columns_by_cell[SHOWS] = _concatenate(show_columns)
    columns_by_cell[OVERALL] = overall
    columns_by_cell[OOV] = tuple(column[overall[3].astype(bool)] for column in overall)
    figures = {}
    for cell, (quality_with, quality_without, family, _) in columns_by_cell.items():
        differences = {"effect": quality_with - quality_without}
        figures[cell] = mean_columns(differences, family, resamples)["effect"]
    return Effect(block, figures, float(overall[0].mean()), float(overall[1].mean()))


def _pair_titles(cell: tuple[str, str], base_folds: Folds, ablated_folds: Folds) -> Columns:
    """Returns the columns of the titles of one cell, in all folds.

    Raises:
        ValueError: Different titles are held out with the block and without the block.
    """
    fold_columns = []
    for base_fold, ablated_fold in zip(base_folds, ablated_folds, strict=True):
        base_scores, ablated_scores = (
            [scores[cell] for scores in seeds if cell in scores] for seeds in (base_fold, ablated_fold)
        )
        if base_scores and ablated_scores:
            family, oov = base_scores[0].family, base_scores[0].oov
            fold_columns.append((_mean_quality(base_scores), _mean_quality(ablated_scores), family, oov))
            if not np.array_equal(family, ablated_scores[0].family):
                raise ValueError(
                    f"different titles of {cell[1]} are held out with the block and without the block; use a "
                    "block that changes neither tokenize.splits nor the labels"
                )
    return _concatenate(fold_columns)


def _concatenate(column_groups: Iterable[Columns]) -> Columns:
    """Concatenates the columns of several folds or cells."""
    no_titles = (np.zeros(0),) * 4
    return tuple(np.concatenate(arrays) for arrays in zip(no_titles, *column_groups, strict=True))


def _mean_quality(scores: Sequence[TitleScores]) -> np.ndarray:
    """Computes the mean quality of each title over several trainings."""
    return np.mean([training_scores.quality for training_scores in scores], axis=0)


def sort_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Sorts effects by descending value; blocks of clusters are last."""
    return sorted(effects, key=lambda effect: (effect.block.is_of_clusters, -effect.overall.value))
