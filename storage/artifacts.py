"""The frozen values that cross a task boundary, and the progress that pure code yields. Standard library only.

An artifact is a published folder below the home: where it is, what is in it (a digest) and a few counts. Never the
data itself: a Prefect result stays a line of JSON, and a cached one can be checked against the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A published folder.

    Attributes:
        path: Folder, relative to the home (POSIX separators).
        digest: Hexadecimal SHA-256 of the content; what later stages are cached on.
        counts: What is in it, for people: ``{"titles": 1500}``.
    """

    path: str
    digest: str
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Guide(Artifact):
    """Immutable Parquet snapshot of the catalogue: programmes.parquet, channels.parquet, feeds.parquet."""


@dataclass(frozen=True, kw_only=True)
class Vocabulary(Artifact):
    """Distinct titles with tokens, labels and split (titles.parquet); tokens with counts and weights (tokens.parquet)."""


@dataclass(frozen=True, kw_only=True)
class Corpus(Artifact):
    """Memory-mapped arrays of token ids, labels and splits a title; what training reads."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Artifact):
    """Trained token rows with their optimizer state, and the history of the run."""


@dataclass(frozen=True, kw_only=True)
class Lexicon(Artifact):
    """Everything needed to embed any title: tokenizer settings, token rows, n-gram rows."""


@dataclass(frozen=True, kw_only=True)
class Vectors(Artifact):
    """Unit-norm float32 title vectors, in the corpus' order."""


@dataclass(frozen=True, kw_only=True)
class Clustering(Artifact):
    """A cluster id a title (-1 is noise), the k-NN graph it came from, and the clusters' names."""


@dataclass(frozen=True, kw_only=True)
class Scores(Artifact):
    """scores.json: k-NN against held-out categories, baselines, agreement of clusters."""


@dataclass(frozen=True, kw_only=True)
class Page(Artifact):
    """What people look at: map.html and the plots."""


@dataclass(frozen=True, kw_only=True)
class Model(Artifact):
    """The folder that the MLflow pyfunc carries: lexicon, title vectors and what is shown of each title."""


@dataclass(frozen=True)
class Progress:
    """One step of a longer piece of work, yielded by pure code; the caller decides who is told.

    Attributes:
        step: Steps done, from 1 (or 0 before the first).
        total: Steps in all.
        metrics: Name to value at this step.
        note: A few words for a log line.
    """

    step: int
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def percent(self) -> float:
        """Share done, 0 to 100."""
        return 100.0 * self.step / self.total if self.total else 0.0
