"""Artifacts, which are passed between tasks, and the progress that pure code yields. Standard library only.

A Prefect result is a line of JSON with the path and digest of the data, so a cached result can be verified.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A published folder."""

    path: str  # relative to the home, with POSIX separators
    digest: str  # hexadecimal SHA-256 of the content; part of later stages' cache keys
    counts: dict[str, int] = field(default_factory=dict)  # for display: {"titles": 1500}
    kind: ClassVar[str] = "Artifact"  # name in artifact.json; in lower case, of the folder below artifacts/

    def __init_subclass__(cls, kind: str = "") -> None:
        cls.kind = kind or cls.__name__


class Guide(Artifact):
    """Immutable snapshot of the catalogue as Parquet: programmes, channels, feeds, descriptions."""


class Vocabulary(Artifact):
    """Distinct titles with their split (titles.parquet); tokens with counts and weights (tokens.parquet)."""


class Corpus(Artifact):
    """Token ids, labels, splits and sentence vectors of titles as memory-mapped arrays for training."""


class Checkpoint(Artifact):
    """Trained embedding rows of tokens with their optimizer state, and the history of the training."""


class TitleEncoderFiles(Artifact, kind="Lexicon"):
    """Everything needed to embed any title: tokenizer settings, embedding rows of tokens and n-grams."""


class Vectors(Artifact):
    """Unit-norm float32 title vectors in the order of the corpus."""


class NearestTitles(Artifact):
    """The nearest titles of each title, by similarity and by the vectors used for clustering."""


class Clustering(Artifact):
    """Cluster id of each title (-1 is noise) and names of the clusters."""


class Baselines(Artifact):
    """Scores of the baselines on the held-out titles of a corpus."""


class Scores(Artifact):
    """scores.json: k-NN on held-out categories, baselines, cluster agreement."""


class TrialPredictions(Artifact, kind="Answers"):
    """Predictions of one ablation trial for the held-out titles."""


class Layout(Artifact):
    """Map coordinates of the titles, and explanations of their neighbours."""


class Page(Artifact):
    """map.html and the plots."""


class Model(Artifact):
    """The model folder of the MLflow pyfunc: encoder, title vectors and metadata of the titles."""


class Tonight(Artifact):
    """Recommendations for one evening per viewer: tonight.parquet, and pages of some viewers."""


@dataclass(frozen=True)
class Progress:
    """Progress of a computation, yielded by pure code; the caller decides where to report it."""

    step: int  # steps done, from 1 (or 0 before the first)
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    note: str = ""  # for a log line

    @property
    def percent(self) -> float:
        """Percentage done, 0 to 100."""
        return 100.0 * self.step / self.total if self.total else 0.0
