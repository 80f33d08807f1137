"""Warm start: tonight's training begins with the rows of an earlier night, and shows its titles fewer times.

Beside checkpoint.safetensors lies what another night needs of it, so that nothing else of that night must still be there:
``token_names.parquet`` and ``label_names.json`` (which row is whose) and ``trained_on.npy`` (64-bit hashes of the show keys that
were shown to these rows, in this night or in those that it started from).

Rows, the rule's state and what is ``touched`` go to tonight's id of the same token, a label's vector to the label of the same name;
a token or label that is new begins as in a cold start. A tuner's memory and the number of steps go on.

Which titles are held out can change from night to night: the date of next_period moves, and so does the threshold of a hash where
a share would be passed. Rows that were trained on a title cannot be judged by it, so one such title makes a cold start.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from safetensors import safe_open
from torch import Tensor

from storage.tables.remap import remap_rows
from tasks.preprocess.corpus import TRAIN, open_corpus
from tasks.tokenize.splits import PLACEHOLDER
from tasks.train.checkpoint import differences
from tasks.train.held_out import HeldOut
from tasks.train.loop import Training
from tasks.train.settings import TrainSettings

TOKENS, LABELS, TRAINED_ON, CHECKPOINT = "token_names.parquet", "label_names.json", "trained_on.npy", "checkpoint.safetensors"


def write_memory(folder: Path, training: Training, before: Path | None = None) -> None:
    """Writes what a later night needs beside the checkpoint.

    Args:
        folder: Of the checkpoint.
        training: That made it.
        before: Folder of the checkpoint that it started from.
    """
    for name in (TOKENS, LABELS):
        shutil.copyfile(training.corpus_folder / name, folder / name)
    shown = title_hashes(training.corpus_folder)[training.held_out.training]
    np.save(folder / TRAINED_ON, np.union1d(shown, np.load(before / TRAINED_ON)) if before else np.unique(shown))


def title_hashes(corpus_folder: Path) -> np.ndarray:
    """uint64 (titles,): one a show key, the same on every machine."""
    keys = pq.read_table(corpus_folder / "titles.parquet", columns=["show_key"])["show_key"]
    digests = b"".join(hashlib.blake2b(key.encode(), digest_size=8).digest() for chunk in keys.chunks for key in chunk.to_pylist())
    return np.frombuffer(digests, dtype="<u8")


def why_cold(corpus_folder: Path, settings: TrainSettings, before: Path) -> str:
    """Why a training cannot start from a checkpoint; "" where it can.

    Args:
        corpus_folder: Of the Corpus to train on.
        settings: For this training.
        before: Folder of the checkpoint.
    """
    if missing := [name for name in (CHECKPOINT, TOKENS, LABELS, TRAINED_ON) if not (before / name).exists()]:
        return f"{before.name} holds no {missing[0]}"
    with safe_open(before / CHECKPOINT, framework="pt") as opened:
        about = json.loads(opened.metadata()["about"])
    if different := differences(about["settings"], json.loads(json.dumps(dataclasses.asdict(settings)))):
        return f"{before.name} was trained with other settings: {different}"
    corpus = open_corpus(corpus_folder)
    held = (corpus.split != TRAIN) & (corpus.split != PLACEHOLDER)
    held[HeldOut(corpus_folder, corpus, settings.tuning_share if settings.patience else 0.0).aside] = True
    if leaked := int(np.isin(title_hashes(corpus_folder)[held], np.load(before / TRAINED_ON)).sum()):
        return f"{before.name} was trained on {leaked} of the {int(held.sum())} titles that are held out tonight"
    return ""


def carry_over(training: Training, before: Path) -> dict[str, int]:
    """Puts the rows of an earlier night into a training that has not begun; how many ``tokens`` and ``labels`` were known.

    Works on whole tensors, in memory, wherever the table keeps its rows.

    Raises:
        ValueError: The checkpoint is not for these settings (``why_cold`` says so before).
    """
    learner, folder = training.learner, training.corpus_folder
    tokens, labels = (_new_ids(names(before), names(folder)) for names in (_token_names, _label_names))
    fresh = {name: torch.cat([piece.cpu() for piece in part.pieces()]) for name, part in learner.parts().items()}
    with safe_open(before / CHECKPOINT, framework="pt", device="cpu") as opened:
        about = json.loads(opened.metadata()["about"])
        old: dict[str, Tensor] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (no mapping: safe_open has keys() alone)
    by_token = {name for name in fresh if name in ("rows", "touched") or name.startswith("state.")}
    by_label = {name for name in fresh if name.startswith(tuple(f"{parameter}." for parameter in learner.parameters))}
    moved = dict(fresh)
    for names, new_ids in ((by_token, tokens), (by_label, labels)):
        moved |= remap_rows({name: old[name] for name in names}, new_ids, {name: fresh[name] for name in names})
    moved |= {name: old[name] for name in fresh if name.startswith("tuner.")}
    learner.restore(moved.__getitem__)
    learner.steps = about["steps"]
    return {"tokens": int((tokens >= 0).sum()), "labels": int((labels >= 0).sum())}


@dataclass(frozen=True)
class Started:
    """How a training started.

    Attributes:
        warm: Whether with another night's rows.
        words: Why not, or with how many rows.
    """

    warm: bool
    words: str

    def __str__(self) -> str:
        return f"{'warm' if self.warm else 'cold'} start: {self.words}"


def begin(corpus_folder: Path, settings: TrainSettings, before: Path | None) -> tuple[Training, Started]:
    """A training that has not begun: warm where it may be, for ``warm_epochs``; else cold, for ``epochs``.

    Args:
        corpus_folder: Of a Corpus.
        settings: For this training.
        before: Folder of the checkpoint to start from; None where there is none.
    """
    cold = why_cold(corpus_folder, settings, before) if before else "there is no scored checkpoint of this lineage and of another corpus"
    if before is None or cold:
        return Training(corpus_folder, settings), Started(False, cold)
    training = Training(corpus_folder, replace(settings, epochs=settings.warm_epochs))
    known = carry_over(training, before)
    words = f"{known['tokens']} of {len(training.table)} tokens and {known['labels']} labels as {before.name} has them"
    return training, Started(True, words)


def _new_ids(before: Sequence[Hashable], now: Sequence[Hashable]) -> Tensor:
    """int64 (before,): where each name is now, -1 where it is gone."""
    place = {name: number for number, name in enumerate(now)}
    return torch.tensor([place.get(name, -1) for name in before], dtype=torch.int64)


def _token_names(folder: Path) -> list[tuple[str, str]]:
    table = pq.read_table(folder / TOKENS)
    return list(zip(table["kind"].to_pylist(), table["token"].to_pylist(), strict=True))


def _label_names(folder: Path) -> list[str]:
    return json.loads((folder / LABELS).read_text(encoding="utf-8"))
