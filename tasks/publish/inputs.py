"""Inputs of the publishing tasks: each reads many artifacts, so it takes them as one object."""

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
    """Inputs of the task that computes the positions of titles on the map."""

    corpus: Corpus
    encoder: TitleEncoderFiles
    vectors: Vectors
    nearest: NearestTitles
    neighbours: int  # number of listed neighbours per title on the map
    seed: int


@dataclass(frozen=True, kw_only=True)
class PageInputs(StageInputs):
    """Inputs of the task that draws map.html and plots.html."""

    guide: Guide
    corpus: Corpus
    checkpoint: Checkpoint
    vectors: Vectors
    nearest: NearestTitles
    layout: Layout
    clustering: Clustering
    scores: Scores
    settings: PublishSettings


@dataclass(frozen=True, kw_only=True)
class Challenger:
    """A registered model that the gate compares with the champion."""

    version: str  # in the model registry
    guide: Guide
    corpus: Corpus
    model: Model
    scores: Scores


@dataclass(frozen=True, kw_only=True)
class PreviousNight:
    """Results of the previous nightly run, with which the report compares; empty if there was none."""

    figures: Mapping[str, float] = field(default_factory=dict)  # headline figures by name
    model_folder: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """Inputs of the task that reports on a nightly run."""

    guide: Guide
    corpus: Corpus
    checkpoint: Checkpoint
    clustering: Clustering
    scores: Scores
    page: Page
    model: Model
    verdict: Verdict
    anomalies: Sequence[str]  # messages of the data checks
    previous_night: PreviousNight = field(default_factory=PreviousNight)
