"""Fits the classifier of kinds to a Corpus, and writes the files of storage/formats/programme_kinds.py."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array
from storage.digests import hashes
from storage.formats.programme_kinds import KIND_COLUMNS, TITLES_FILE, write_kind_arrays
from tasks.kinds.classifier import fit_classifier
from tasks.kinds.decisions import decide_kinds
from tasks.kinds.evidence import read_evidence
from tasks.kinds.features import Scaling
from tasks.kinds.kinds import KINDS

_FAMILY_HASHES = 1 << 20  # number of different hashes of franchises


def write_kinds(guide: Path, corpus: Path, work: Path, sentences: Mapping[str, Any]) -> dict[str, int]:
    """Fits a classifier of kinds to a Corpus; writes the classifier and the kinds of all titles.

    Args:
        guide: Folder of the Guide.
        corpus: Folder with titles.parquet, variants.parquet and, with a sentence encoder, sentences.npy.
        work: Folder for temporary files.
        sentences: Description of the sentence encoder, which is stored with the classifier.

    Returns:
        Number of titles of each kind.
    """
    guide_evidence = read_evidence(guide / "programmes.parquet", corpus / "variants.parquet", work)
    title_table = pq.read_table(corpus / "titles.parquet", columns=["title", "family", "split"])
    titles, families, splits = (title_table[name].to_pylist() for name in title_table.column_names)
    vectors = np.zeros((len(titles), 1), dtype=np.float32)
    if (corpus / "sentences.npy").exists():
        vectors = open_array(corpus, "sentences")
    labels = np.where(np.array(splits)[:, None] == "placeholder", -1, guide_evidence.training_labels())
    scaling = Scaling.fit(guide_evidence.structure, vectors)
    inputs = scaling.inputs(guide_evidence.structure, titles, vectors)
    family_hashes = (hashes(families, "kinds") * _FAMILY_HASHES).astype(np.int64)
    classifier = fit_classifier(
        scaling, inputs, labels, family_hashes, guide_evidence.channels, guide_evidence.sources
    )
    margins = np.full(labels.shape, -np.inf, dtype=np.float32)
    if classifier:
        is_predictable = np.array([channel in classifier.channels for channel in guide_evidence.channels])
        margins[is_predictable] = inputs.margins(classifier.weights)[is_predictable]
    kinds = decide_kinds(guide_evidence.evidence, margins, classifier, guide_evidence.sources)
    source_names, source_ids = np.unique(np.array(guide_evidence.sources, dtype=str), return_inverse=True)
    arrays = {
        "title.shares": guide_evidence.evidence.shares.astype(np.float32),
        "title.numbered": guide_evidence.evidence.numbered_shares.astype(np.float32),
        "title.animated": guide_evidence.evidence.is_animation,
        "title.not_film": guide_evidence.evidence.has_non_film_category,
        "title.margins": margins,
        "title.source": source_ids.astype(np.int16),
    }
    settings: dict[str, Any] = {"title_sources": source_names.tolist(), "sentences": dict(sentences)}
    if classifier:
        arrays |= classifier.arrays()
        settings |= {"channels": sorted(classifier.channels), "sources": list(classifier.sources)}
    write_kind_arrays(corpus, arrays, settings)
    kind_names = [[prediction.kind for prediction in predictions] for predictions in kinds]
    probabilities = [[prediction.probability for prediction in predictions] for predictions in kinds]
    prediction_sources = [[prediction.source for prediction in predictions] for predictions in kinds]
    table = pa.table([kind_names, probabilities, prediction_sources], schema=KIND_COLUMNS)
    pq.write_table(table, corpus / TITLES_FILE, compression="zstd")
    return {kind: sum(kind in names for names in kind_names) for kind in KINDS}
