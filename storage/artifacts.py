"""Defines artifacts, which Prefect tasks pass to each other, and Progress, which computations yield.

An artifact refers to a folder with data. Prefect stores it as one line of JSON with the path and the digest
of the folder, so that a cached result can be verified. This module imports only the standard library.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """Reference to an immutable folder of data in the home, which a task has published."""

    path: str  # relative to the home, with POSIX separators
    digest: str  # hexadecimal SHA-256 of the content; part of the cache keys of tasks that read the folder
    counts: dict[str, int] = field(default_factory=dict)  # for display: {"titles": 1500}
    kind: ClassVar[str] = "Artifact"  # name in artifact.json and, in lower case, of a folder in artifacts/

    def __init_subclass__(cls, kind: str = "") -> None:
        cls.kind = kind or cls.__name__


class Guide(Artifact):
    """Snapshot of the stored TV programmes as Parquet files: programmes, channels, feeds, descriptions."""


class Vocabulary(Artifact):
    """Parquet files of the distinct titles, with their training or held-out set, and of their tokens."""


class Corpus(Artifact):
    """Token ids, category labels, training and held-out sets, and sentence vectors of titles, as arrays."""


class Checkpoint(Artifact):
    """Trained embedding rows of tokens with their optimizer state, and the history of the training."""


class TitleEncoderFiles(Artifact, kind="Lexicon"):
    """Everything that is needed to embed a title: tokenizer settings, embeddings of tokens and n-grams."""


class Vectors(Artifact):
    """Unit-norm float32 vectors of the titles, in the order of the Corpus."""


class NearestTitles(Artifact):
    """Two lists of nearest titles of each title: by similarity vectors, and by vectors for clustering."""


class Clustering(Artifact):
    """The cluster id of each title (-1 if the title is in no cluster) and the names of the clusters."""


class Baselines(Artifact):
    """Scores of simple models (such as TF-IDF with k-NN) on the held-out titles of a Corpus."""


class LinearModel(Artifact):
    """Linear models that predict categories from the tokens of titles: a part of the predictor."""


class Scores(Artifact):
    """Accuracy of k-NN and of simple models on held-out titles, and quality of the clusters (scores.json)."""


class TrialPredictions(Artifact, kind="Answers"):
    """Categories that one run of an ablation study has predicted for the held-out titles."""


class Layout(Artifact):
    """Coordinates of the titles on the two-dimensional map, and reasons why neighbours are similar."""


class Page(Artifact):
    """The map of all titles as an HTML page (map.html), and plots of the scores."""


class Model(Artifact):
    """Files of a model that is registered in MLflow: title encoder, title vectors, metadata of the titles."""


class Tonight(Artifact):
    """Recommendations for one evening for each viewer (tonight.parquet), and HTML pages for some viewers."""


def read_details(folder: Path) -> dict[str, Any]:
    """Returns the JSON values that a stage has stored under ``details`` in the file artifact.json."""
    return json.loads((folder / "artifact.json").read_text(encoding="utf-8"))["details"]


def read_inputs(folder: Path) -> list[dict[str, Any]]:
    """Returns the inputs of the artifact in a folder: one dict with kind, path and digest per input artifact.

    The list is empty if artifact.json does not record the inputs (``made_of``).
    """
    artifact_json = json.loads((folder / "artifact.json").read_text(encoding="utf-8"))
    return artifact_json.get("made_of", {}).get("inputs", [])


@dataclass(frozen=True)
class Progress:
    """State of a running computation. Computations yield Progress objects, which their callers log."""

    step: int  # number of completed steps
    total: int  # number of steps of the computation
    metrics: Mapping[str, float] = field(default_factory=dict)  # by name, such as "loss"
    note: str = ""  # text for the log

    @property
    def percent(self) -> float:
        """Returns the completed percentage, 0 to 100."""
        return 100.0 * self.step / self.total if self.total else 0.0
