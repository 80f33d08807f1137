"""Defines the inputs of the tasks of the stage publish, with one dataclass per task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from storage.artifacts import (
    Checkpoint,
    Clustering,
    Corpus,
    Guide,
    Layout,
    Model,
    NearestTitles,
    Page,
    Scores,
    TitleEncoderFiles,
    Vectors,
)
from storage.stages import StageInputs
from tasks.publish.report import Verdict
from tasks.publish.settings import PublishSettings


@dataclass(frozen=True, kw_only=True)
class LayoutInputs(StageInputs):
    """Inputs of the task ``compute_layout``, which computes the positions of titles on the map."""

    corpus: Corpus
    encoder: TitleEncoderFiles
    vectors: Vectors
    nearest: NearestTitles
    neighbours: int  # number of neighbours that the map lists for a title
    seed: int  # seed of the random numbers of the layout


@dataclass(frozen=True, kw_only=True)
class PageInputs(StageInputs):
    """Inputs of the task ``draw``, which writes map.html and plots.html."""

    guide: Guide
    corpus: Corpus
    checkpoint: Checkpoint
    nearest: NearestTitles
    layout: Layout
    clustering: Clustering
    scores: Scores
    settings: PublishSettings


@dataclass(frozen=True, kw_only=True)
class Challenger:
    """A newly registered model, which is promoted if it is not worse than the champion (the served model)."""

    version: str  # version number in the MLflow model registry
    guide: Guide
    corpus: Corpus
    vectors: Vectors
    model: Model
    scores: Scores


@dataclass(frozen=True, kw_only=True)
class PreviousNight:
    """Results of the previous nightly run, with which the report compares; empty if there was no such run."""

    figures: Mapping[str, float] = field(default_factory=dict)  # main metrics by name (report.HEADLINE)
    model_folder: str = ""  # path of the Model artifact of the previous run


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """Inputs of the task ``report``, which writes the report of a nightly run."""

    guide: Guide
    corpus: Corpus
    checkpoint: Checkpoint
    clustering: Clustering
    scores: Scores
    page: Page
    model: Model
    verdict: Verdict
    anomalies: Sequence[str]  # warnings of the checks of tonight's guide data
    previous_night: PreviousNight = field(default_factory=PreviousNight)
