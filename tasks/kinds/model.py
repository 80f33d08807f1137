"""Determines the kinds of the programmes of any guide, with the classifier and the shows of a Model folder.

Usage::

    title_kinds = KindModel.open(model_folder).predict(programmes, variants, titles, show_keys, work)
    for title, categories, numbered in programmes:
        predictions = kinds_of_programme(title_kinds[title], categories, numbered)  # decisions.py

Kinds that the guide states take precedence over kinds that the guides of the home state for the same show.
Both take precedence over predictions. This module does not import torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from storage.formats.programme_kinds import read_kind_arrays
from tasks.kinds.classifier import KindClassifier
from tasks.kinds.decisions import decide_kinds, is_compatible
from tasks.kinds.evidence import Evidence, read_evidence
from tasks.kinds.kinds import KINDS, Kind, KindPrediction, combine
from tasks.kinds.precision import PRECISION
from tasks.sentences.reopen import reopen


@dataclass(frozen=True)
class KindModel:
    """Classifier of kinds and the kinds of all shows of a home, for use with any guide."""

    classifier: KindClassifier | None = None  # None: nothing is predicted
    home_kinds: Mapping[str, tuple[KindPrediction, ...]] = field(default_factory=dict)  # kinds by show key
    sentences: Mapping[str, Any] = field(default_factory=dict)  # description of the sentence encoder
    precision: Mapping[Kind, float] = field(default_factory=lambda: PRECISION)  # minimum, by kind

    @staticmethod
    def open(folder: Path, precision: Mapping[Kind, float] = PRECISION) -> "KindModel":
        """Opens the classifier and the kinds of shows in a Model folder.

        If an older version made the model, both are missing, and the returned model predicts no kinds.

        Args:
            folder: Model folder.
            precision: Minimum precision of the predictions of each kind.
        """
        if (files := read_kind_arrays(folder)) is None:
            return KindModel()
        arrays, settings = files
        classifier = KindClassifier.from_arrays(arrays, settings)
        evidence = Evidence(
            shares=arrays["title.shares"],
            numbered_shares=arrays["title.numbered"],
            is_animation=arrays["title.animated"],
            has_non_film_category=arrays["title.not_film"],
        )
        sources = [settings["title_sources"][source] for source in arrays["title.source"]]
        kinds = decide_kinds(evidence, arrays["title.margins"], classifier, sources, precision)
        shows = pq.read_table(folder / "titles.parquet", columns=["show_key"])["show_key"].to_pylist()
        return KindModel(classifier, dict(zip(shows, kinds, strict=True)), settings["sentences"], precision)

    def predict(
        self,
        programmes: Path,
        variants: Path,
        titles: Sequence[str],
        show_keys: Sequence[str],
        work: Path,
    ) -> list[tuple[KindPrediction, ...]]:
        """Returns the kinds of the titles of a guide.

        Args:
            programmes, variants, work: Arguments of ``read_evidence``.
            titles, show_keys: Display title and show key of each title.
        """
        guide_evidence = read_evidence(programmes, variants, work)
        margins = np.full((len(titles), len(KINDS)), -np.inf, dtype=np.float32)
        is_predicted = np.array([show not in self.home_kinds for show in show_keys], dtype=bool)
        is_predicted &= (guide_evidence.evidence.labels() < 0).any(axis=1)
        if self.classifier:
            channels = self.classifier.channels
            is_predicted &= np.array([channel in channels for channel in guide_evidence.channels], dtype=bool)
        if self.classifier and is_predicted.any():
            rows = np.flatnonzero(is_predicted)
            vectors = np.zeros((len(titles), len(self.classifier.scaling.directions)), dtype=np.float32)
            encoder = reopen(self.sentences) if self.sentences.get("identity") else None
            if encoder is not None:
                vectors[rows] = encoder.encode([titles[title] for title in rows.tolist()])
            inputs = self.classifier.scaling.inputs(guide_evidence.structure, titles, vectors)
            margins[rows] = inputs.take(rows).margins(self.classifier.weights)
        kinds = decide_kinds(
            guide_evidence.evidence, margins, self.classifier, guide_evidence.sources, self.precision
        )
        for title, is_numbered in enumerate(guide_evidence.evidence.is_numbered.tolist()):
            by_kind: dict[Kind, KindPrediction] = {prediction.kind: prediction for prediction in kinds[title]}
            stated: list[Kind] = [*by_kind]
            for prediction in self.home_kinds.get(show_keys[title], ()):
                if prediction.kind not in stated and is_compatible(prediction.kind, stated, is_numbered):
                    by_kind[prediction.kind] = prediction
            kinds[title] = tuple(by_kind[kind] for kind in combine(by_kind, is_numbered))
        return kinds
