"""Artifacts, which cross a task boundary, and the progress that pure code yields. Standard library only.

A Prefect result stays a line of JSON, never the data, and a cached one can be verified against the disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A published folder."""

    path: str  # relative to the home, with POSIX separators
    digest: str  # hexadecimal SHA-256 of the content; later stages are cached on it
    counts: dict[str, int] = field(default_factory=dict)  # for people: {"titles": 1500}
    kind: ClassVar[str] = "Artifact"  # in artifact.json, and in lower case the folder below artifacts/

    def __init_subclass__(cls, kind: str = "") -> None:
        cls.kind = kind or cls.__name__


class Guide(Artifact):
    """Immutable snapshot of the catalogue as Parquet: programmes, channels, feeds, descriptions."""


class Vocabulary(Artifact):
    """Distinct titles with their split (titles.parquet); tokens with counts and weights (tokens.parquet)."""


class Corpus(Artifact):
    """Token ids, labels, split and sentence vectors of each title as memory-mapped arrays; for training."""


class Checkpoint(Artifact):
    """Trained token rows with their optimizer state, and the history of the run."""


class TitleEncoderFiles(Artifact, kind="Lexicon"):
    """Everything needed to embed any title: tokenizer settings, token rows, n-gram rows."""


class Vectors(Artifact):
    """Unit-norm float32 title vectors, in the corpus' order."""


class NearestTitles(Artifact):
    """The nearest titles of each title: by similarity, and by the vectors that clusters are made of."""


class Clustering(Artifact):
    """A cluster id for each title (-1 is noise), and the clusters' names."""


class Baselines(Artifact):
    """What plain baselines score on the held-out titles of a corpus."""


class Scores(Artifact):
    """scores.json: k-NN against held-out categories, baselines, agreement of clusters."""


class Answers(Artifact):
    """What the space of one trial of an ablation answers to held-out titles."""


class Layout(Artifact):
    """Where titles stand on the map, and why neighbours are near."""


class Page(Artifact):
    """map.html and the plots."""


class Model(Artifact):
    """The folder that the MLflow pyfunc carries: encoder, title vectors and what is shown of each title."""


class Tonight(Artifact):
    """What is worth watching in an evening, for each viewer: tonight.parquet, and pages of some."""


@dataclass(frozen=True)
class Progress:
    """One step of a longer piece of work, yielded by pure code; the caller decides where it is reported."""

    step: int  # steps done, from 1 (or 0 before the first)
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    note: str = ""  # for a log line

    @property
    def percent(self) -> float:
        """Percentage done, 0 to 100."""
        return 100.0 * self.step / self.total if self.total else 0.0
