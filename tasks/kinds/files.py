"""Fits the classifier of kinds to a Corpus and writes its files (storage/formats/programme_kinds.py)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.arrays import open_array
from storage.digests import hashes
from storage.formats.programme_kinds import COLUMNS, TITLES, write_kind_arrays
from tasks.kinds.classifier import fit_classifier
from tasks.kinds.decisions import decide
from tasks.kinds.evidence import read_facts
from tasks.kinds.features import Scaling
from tasks.kinds.kinds import KINDS

_GROUPS = 1 << 20  # number of hash values of franchises


def write_kinds(guide: Path, corpus: Path, work: Path, sentences: Mapping[str, Any]) -> dict[str, int]:
    """Fits a classifier of kinds to the titles of a Corpus, and writes the classifier and the titles' kinds.

    Args:
        guide: Folder of the Guide.
        corpus: Folder with titles.parquet, variants.parquet and, with a sentence encoder, sentences.npy.
        work: Folder for temporary files.
        sentences: Description of the sentence encoder, which is stored with the classifier.

    Returns:
        Number of titles by kind.
    """
    facts = read_facts(guide / "programmes.parquet", corpus / "variants.parquet", work)
    title_table = pq.read_table(corpus / "titles.parquet", columns=["title", "family", "split"])
    titles, families, splits = (title_table[name].to_pylist() for name in title_table.column_names)
    vectors = np.zeros((len(titles), 1), dtype=np.float32)
    if (corpus / "sentences.npy").exists():
        vectors = open_array(corpus, "sentences")
    labels = np.where(np.array(splits)[:, None] == "placeholder", -1, facts.training_labels())
    scaling = Scaling.fit(facts.structure, vectors)
    inputs = scaling.inputs(facts.structure, titles, vectors)
    groups = (hashes(families, "kinds") * _GROUPS).astype(np.int64)
    classifier = fit_classifier(scaling, inputs, labels, groups, facts.channels, facts.sources)
    margins = np.full(labels.shape, -np.inf, dtype=np.float32)
    if classifier:
        has_labels = np.array([channel in classifier.channels for channel in facts.channels])
        margins[has_labels] = inputs.margins(classifier.weights)[has_labels]
    kinds = decide(facts.evidence, margins, classifier, facts.sources)
    names, source_ids = np.unique(np.array(facts.sources, dtype=str), return_inverse=True)
    arrays = {
        "title.shares": facts.evidence.shares.astype(np.float32),
        "title.numbered": facts.evidence.numbered.astype(np.float32),
        "title.animated": facts.evidence.animated,
        "title.not_film": facts.evidence.not_film,
        "title.margins": margins,
        "title.source": source_ids.astype(np.int16),
    }
    settings: dict[str, Any] = {"title_sources": names.tolist(), "sentences": dict(sentences)}
    if classifier:
        arrays |= classifier.arrays()
        settings |= {"channels": sorted(classifier.channels), "sources": list(classifier.sources)}
    write_kind_arrays(corpus, arrays, settings)
    lists = (
        [[prediction.kind for prediction in title] for title in kinds],
        [[prediction.probability for prediction in title] for title in kinds],
        [[prediction.source for prediction in title] for title in kinds],
    )
    columns = [pa.array(values, column.type) for values, column in zip(lists, COLUMNS, strict=True)]
    table = pa.table(columns, schema=COLUMNS)
    pq.write_table(table, corpus / TITLES, compression="zstd")
    return {kind: sum(kind in title for title in lists[0]) for kind in KINDS}
