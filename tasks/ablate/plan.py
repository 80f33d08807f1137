"""Plans the trials of an ablation: per fold and seed, one of the preset, and one without each block.

A trial trains a model and predicts the categories of held-out titles.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from storage.artifacts import TrialPredictions
from storage.formats.answers import CLUSTERS
from tasks.ablate.blocks import AblationBlock, choose_blocks
from tasks.ablate.settings import AblationSettings
from tasks.ablate.trial.task import Learning
from tasks.overrides import SettingError, override
from tasks.preprocess.settings import PreprocessSettings
from tasks.scoring.folds import SALTS
from tasks.settings import Settings
from tasks.tokenize.settings import TokenizeSettings

BASE = "preset"  # name of the trials of the unchanged preset


@dataclass(frozen=True, kw_only=True)
class AblationTrial:
    """One training of an ablation, on one fold of the guide and with one seed.

    The model is that of the preset, either unchanged or with one building block removed or replaced.
    """

    block: str  # name of the block, or BASE
    fold: int  # number of the fold, from 0
    corpus: tuple[TokenizeSettings, PreprocessSettings]  # settings of the corpus
    learning: Learning  # settings of the training


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Blocks and trials of an ablation."""

    blocks: list[AblationBlock]  # blocks to measure
    ineffective_blocks: list[str]  # names of the requested blocks that do not change the preset
    trials: list[AblationTrial]

    def group_predictions(
        self, predictions: Iterable[TrialPredictions]
    ) -> dict[str, list[list[TrialPredictions]]]:
        """Groups predictions, which must be in the order of ``trials``, by block and fold."""
        groups: dict[str, list[list[TrialPredictions]]] = {}
        for trial, trial_predictions in zip(self.trials, predictions, strict=True):
            folds = groups.setdefault(trial.block, [])
            folds.extend([] for _ in range(len(folds), trial.fold + 1))
            folds[trial.fold].append(trial_predictions)
        return groups


def plan_ablation(settings: Settings, ablation: AblationSettings) -> Plan:
    """Plans the trials of a preset and of the blocks that ``ablation.blocks`` selects.

    Args:
        settings: Settings of the preset.
        ablation: Settings of the ablation.

    Raises:
        UnknownBlock: A name or pattern in ``ablation.blocks`` matches no block.
        SettingError: A change of settings in ``ablation.blocks`` is invalid.
    """
    changed_settings: dict[str, Settings] = {}
    ineffective_blocks, blocks = [], choose_blocks(ablation.blocks)
    for block in blocks:
        try:
            changed_settings[block.name] = override(settings, block.changes)
        except SettingError:  # the block changes a setting of a strategy that the preset does not use
            if "=" in block.name:
                raise
        if changed_settings.get(block.name, settings) == settings:
            changed_settings.pop(block.name, None)
            ineffective_blocks.append(block.name)
    blocks = [block for block in blocks if block.name in changed_settings]
    variants = {base_of(block): settings for block in blocks} | changed_settings
    of_clusters = {name for block in blocks if block.is_of_clusters for name in (block.name, base_of(block))}
    runs = itertools.product(variants.items(), range(ablation.folds), range(ablation.seeds))
    trials = [
        plan_trial(name, variant, fold, seed, name in of_clusters) for (name, variant), fold, seed in runs
    ]
    return Plan(blocks=blocks, ineffective_blocks=ineffective_blocks, trials=trials)


def plan_trial(name: str, settings: Settings, fold: int, seed: int, of_clusters: bool) -> AblationTrial:
    """Plans the trial of a block.

    Args:
        name: Name of the block, or BASE.
        settings: Settings with the changes of the block.
        fold: Number of the fold, which determines the salt of the split.
        seed: Number of the seed, which is added to the seed of the preset.
        of_clusters: Whether the trial is scored by clusters instead of categories.
    """
    splits = replace(settings.tokenize.splits, salt=SALTS[fold])
    learning = Learning(
        name=f"{name} {fold + 1}/{seed + 1}",
        train=replace(settings.train, seed=settings.train.seed + seed),
        augment=settings.augment,
        cluster=settings.cluster if of_clusters else None,
        k=settings.evaluate.k,
    )
    corpus = replace(settings.tokenize, splits=splits), settings.preprocess
    return AblationTrial(block=name, fold=fold, corpus=corpus, learning=learning)


def base_of(block: AblationBlock) -> str:
    """Returns the name of the trials of the preset with which the trials of a block are compared."""
    return f"{BASE} {CLUSTERS}" if block.is_of_clusters else BASE
