"""The plan of an ablation: a trial of the preset and of each block on each fold with each seed."""

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

BASE = "preset"


@dataclass(frozen=True, kw_only=True)
class AblationTrial:
    """The training of one block on one fold with one seed: settings of its corpus and of its training."""

    block: str
    fold: int
    corpus: tuple[TokenizeSettings, PreprocessSettings]
    learning: Learning


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The blocks of an ablation, the names of those that do not change the preset, and all trials."""

    blocks: list[AblationBlock]
    left_out: list[str]
    trials: list[AblationTrial]

    def gather(self, answers: Iterable[TrialPredictions]) -> dict[str, list[list[TrialPredictions]]]:
        """Groups the answers of the trials, given in their order, by block and fold."""
        groups: dict[str, list[list[TrialPredictions]]] = {}
        for trial, answer in zip(self.trials, answers, strict=True):
            folds = groups.setdefault(trial.block, [])
            folds.extend([] for _ in range(len(folds), trial.fold + 1))
            folds[trial.fold].append(answer)
        return groups


def plan_ablation(settings: Settings, ablation: AblationSettings) -> Plan:
    """Plans the trials of the chosen blocks and of the preset.

    Raises:
        UnknownBlock: No block has such a name.
        SettingError: A change that the user named is invalid.
    """
    changed: dict[str, Settings] = {}
    left_out, blocks = [], choose_blocks(ablation.blocks)
    for block in blocks:
        try:
            changed[block.name] = override(settings, block.changes)
        except SettingError:  # a setting of a strategy that this preset does not use
            if "=" in block.name:
                raise
        if changed.get(block.name, settings) == settings:
            changed.pop(block.name, None)
            left_out.append(block.name)
    blocks = [block for block in blocks if block.name in changed]
    variants = {base_of(block): settings for block in blocks} | changed
    of_clusters = {name for block in blocks if block.is_of_clusters for name in (block.name, base_of(block))}
    runs = itertools.product(variants.items(), range(ablation.folds), range(ablation.seeds))
    trials = [
        plan_trial(name, variant, fold, seed, name in of_clusters) for (name, variant), fold, seed in runs
    ]
    return Plan(blocks=blocks, left_out=left_out, trials=trials)


def plan_trial(name: str, settings: Settings, fold: int, seed: int, of_clusters: bool) -> AblationTrial:
    """Plans a trial. ``fold`` selects the salt of the splits; ``seed`` is added to the training seed."""
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
    """Returns the name of the trials of the preset with which a block is compared."""
    return f"{BASE} {CLUSTERS}" if block.is_of_clusters else BASE
