"""Determines the kinds of the programmes of any guide from categories, times of airings and a model.

Usage::

    kinds = KindModel.open(model_folder).predict(programmes, variants, titles, show_keys, work)
    for title, categories, numbered in programmes:
        predictions = kinds.kinds_of_programme(title, categories, numbered)

Kinds that the guide states take precedence over kinds that other guides of the home state for the same show,
and both take precedence over predictions. This module does not import torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from storage.formats.programme_kinds import read_kind_arrays
from tasks.kinds.classifier import KindClassifier
from tasks.kinds.decisions import TitleKinds, decide, is_compatible
from tasks.kinds.evidence import Evidence, read_facts
from tasks.kinds.kinds import KINDS, Kind, KindPrediction, combine
from tasks.kinds.precision import PRECISION
from tasks.sentences.reopen import reopen


@dataclass(frozen=True)
class KindModel:
    """Classifier of kinds and the kinds of all shows of a home, for use with any guide."""

    classifier: KindClassifier | None = None  # None: nothing is predicted
    home: Mapping[str, tuple[KindPrediction, ...]] = field(default_factory=dict)  # kinds by show key
    sentences: Mapping[str, Any] = field(default_factory=dict)  # description of the sentence encoder
    precision: Mapping[Kind, float] = field(default_factory=lambda: PRECISION)  # minimum, by kind

    @staticmethod
    def open(folder: Path, precision: Mapping[Kind, float] = PRECISION) -> "KindModel":
        """Opens the classifier and the kinds in a Model folder. If they are missing, nothing is predicted.

        Args:
            folder: Model folder.
            precision: Minimum precision of the predictions of each kind.
        """
        if (files := read_kind_arrays(folder)) is None:
            return KindModel()
        arrays, settings = files
        classifier = KindClassifier.from_arrays(arrays, settings)
        evidence = Evidence(
            *(arrays[f"title.{name}"] for name in ("shares", "numbered", "animated", "not_film"))
        )
        sources = [settings["title_sources"][source] for source in arrays["title.source"]]
        kinds = decide(evidence, arrays["title.margins"], classifier, sources, precision)
        shows = pq.read_table(folder / "titles.parquet", columns=["show_key"])["show_key"].to_pylist()
        return KindModel(classifier, dict(zip(shows, kinds, strict=True)), settings["sentences"], precision)

    def predict(
        self,
        programmes: Path,
        variants: Path,
        titles: Sequence[str],
        show_keys: Sequence[str],
        work: Path,
    ) -> TitleKinds:
        """Returns the kinds of the titles of a guide.

        Args:
            programmes, variants, work: Arguments of ``read_facts``.
            titles, show_keys: Display title and show key of each title.
        """
        facts = read_facts(programmes, variants, work)
        margins = np.full((len(titles), len(KINDS)), -np.inf, dtype=np.float32)
        is_new = np.array([show not in self.home for show in show_keys], dtype=bool)
        is_new &= (facts.evidence.labels() < 0).any(axis=1)
        if self.classifier:
            channels = self.classifier.channels
            is_new &= np.array([channel in channels for channel in facts.channels], dtype=bool)
        if self.classifier and is_new.any():
            vectors = np.zeros((len(titles), len(self.classifier.scaling.directions)), dtype=np.float32)
            encoder = reopen(self.sentences) if self.sentences.get("identity") else None
            if encoder is not None:
                vectors[is_new] = encoder.encode([titles[title] for title in np.flatnonzero(is_new).tolist()])
            inputs = self.classifier.scaling.inputs(facts.structure, titles, vectors)
            margins[is_new] = inputs.take(np.flatnonzero(is_new)).margins(self.classifier.weights)
        kinds = decide(facts.evidence, margins, self.classifier, facts.sources, self.precision)
        numbered = facts.evidence.is_numbered
        for title, show in enumerate(show_keys):
            by_kind: dict[Kind, KindPrediction] = {prediction.kind: prediction for prediction in kinds[title]}
            confident_kinds: list[Kind] = [*by_kind]
            for prediction in self.home.get(show, ()):
                if prediction.kind not in confident_kinds and is_compatible(
                    prediction.kind, confident_kinds, bool(numbered[title])
                ):
                    by_kind[prediction.kind] = prediction
            kinds[title] = tuple(by_kind[kind] for kind in combine(by_kind, bool(numbered[title])))
        return TitleKinds(kinds)
