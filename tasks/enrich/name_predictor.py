"""Predicts category names of a vocabulary (vocabulary.py), with confidence calibrated on held-out titles."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from storage.arrays import Ragged
from storage.formats.model import Votes
from storage.shapes import Float32
from tasks.enrich.vocabulary import Vocabulary
from tasks.predictor.prediction import predict_top, support_of_names

if TYPE_CHECKING:
    from tasks.scoring.confidence import Calibrations, HeldOutPredictions


class EmbeddedTitles(NamedTuple):
    """Vectors of titles, and the other inputs from which the categories of these titles are predicted."""

    vectors: Float32[np.ndarray, "titles dim"]  # unit norm, or zero for a title without tokens of the model
    # support of each label by the linear part, float32 (titles, labels); None for models of older versions
    support: np.ndarray | None
    on_unlabelled_channels: np.ndarray  # bool, whether no channel of the title has labelled training titles


class VotingNeighbours(NamedTuple):
    """The k nearest training titles (voters) of each title, nearest first."""

    ids: np.ndarray  # int64 (titles, k), row numbers of voters in the model; -1: no voter
    cosines: np.ndarray  # float32 (titles, k), cosine similarities
    support: np.ndarray | None = None  # support of each label, float32 (titles, labels)
    on_unlabelled_channels: np.ndarray | None = None  # bool (titles,); None: False for all titles


@dataclass(frozen=True)
class NamePredictions:
    """Predictions at one level of a vocabulary.

    Attributes:
        names: Predicted name (category) of each title; "" for a title without votes.
        confidence: Probability that the name of each title is correct.
        is_selected: Whether the name of each title reaches the requested precision and is added to the guide.
        held_out: Precision and coverage on held-out titles (tasks/scoring/confidence.py), or the reason why
            they cannot be computed. The key "channels" contains the figures for titles of held-out channels.
        held_out_names: Two lists, for titles of held-out shows and of held-out channels, with the name that
            would be added to each title; "" if none would be added.
    """

    names: list[str]
    confidence: np.ndarray
    is_selected: np.ndarray
    held_out: dict[str, object]
    held_out_names: tuple[list[str], list[str]]

    @property
    def selected_names(self) -> list[str]:
        """Name that is added to the guide for each title; "" if no name is added."""
        return [name if is_selected else "" for name, is_selected in zip(self.names, self.is_selected)]


@dataclass(frozen=True, eq=False)
class CandidateNames:
    """Names (categories) at one level of a vocabulary that can be predicted.

    Attributes:
        names: The distinct names.
        labels: Names of each title of the model, as indices into ``names``.
        name_of_label: For each label of the linear part, the index of its name; -1 if it has no name.
    """

    names: list[str]
    labels: Ragged
    name_of_label: np.ndarray

    @staticmethod
    def from_vocabulary(
        title_labels: Sequence[Sequence[str]],
        linear_labels: Sequence[str],
        vocabulary: Vocabulary,
        level: int,
    ) -> "CandidateNames":
        """Creates the candidates from the names of all labels in a vocabulary.

        Args:
            title_labels: Labels of each title of the model; of held-out titles also rare categories.
            linear_labels: Labels of the linear part; empty for models of older versions, which have none.
            vocabulary: Vocabulary with the names.
            level: Level of the names.
        """
        labels = {*linear_labels} or {label for row in title_labels for label in row}
        names_of_labels = (vocabulary.of_label(label)[level] for label in sorted(labels))
        names = list(dict.fromkeys(filter(None, names_of_labels)))
        index_of_name = {name: index for index, name in enumerate(names)}

        @functools.cache
        def index_of(label: str) -> int:
            return index_of_name.get(vocabulary.of_label(label)[level], -1)

        rows = [sorted({index_of(label) for label in row} - {-1}) for row in title_labels]
        name_of_label = np.array([index_of(label) for label in linear_labels], dtype=np.int64)
        return CandidateNames(names, Ragged.from_rows(rows), name_of_label)

    def predict(self, neighbours: VotingNeighbours) -> tuple[np.ndarray, np.ndarray]:
        """Returns the index of the predicted name of each title (-1 without votes), and the name's score."""
        support = self.support(neighbours)
        return predict_top(neighbours.ids, neighbours.cosines, self.labels, len(self.names), support)

    def names_at(self, indices: np.ndarray) -> list[str]:
        """Returns the names with the given indices; "" for index -1."""
        return [self.names[index] if index >= 0 else "" for index in indices]

    def support(self, neighbours: VotingNeighbours) -> np.ndarray | None:
        """Returns the support of each name by the linear part; None for models of older versions."""
        if neighbours.support is None:
            return None
        return support_of_names(neighbours.support, self.name_of_label, len(self.names))


IsAllowed = Callable[[int, str], bool]  # (index of a title, name) -> whether the name may be added to it


@dataclass(frozen=True, eq=False)
class CalibratedHeldOut:
    """Predictions for a set of held-out titles, and calibrations that are fitted to these predictions.

    Attributes:
        names: Predicted name of each held-out title.
        held_out: Scores and correctness of the predicted names.
        calibrations: Calibrations that map scores to confidence; None if too few titles are held out.
        reason: Why ``calibrations`` is None; "" if there are calibrations.
    """

    names: list[str]
    held_out: "HeldOutPredictions"
    calibrations: "Calibrations | None"
    reason: str

    @staticmethod
    def fit(
        candidates: CandidateNames,
        votes: Votes,
        languages: np.ndarray,
        families: Sequence[str],
        is_allowed: IsAllowed | None = None,
    ) -> "CalibratedHeldOut":
        """Predicts names for held-out titles and fits calibrations to the predictions.

        Args:
            candidates: Names that can be predicted.
            votes: Held-out titles with their neighbours.
            languages, families: Language and franchise of each held-out title.
            is_allowed: Function that returns whether a name may be added to a held-out title; None if every
                name may.
        """
        from tasks.scoring import confidence as scoring

        support = None if votes.support is None else np.asarray(votes.support, dtype=np.float32)
        predicted, scores = candidates.predict(VotingNeighbours(votes.neighbours, votes.cosines, support))
        names = candidates.names_at(predicted)
        if is_allowed is not None:
            scores = np.where([is_allowed(title, name) for title, name in enumerate(names)], scores, 0.0)
        # A title may have no name at this level, or only names of rare categories. A name that is predicted
        # for such a title counts as wrong, because it would be added to a guide.
        correct = scoring.contains_label(candidates.labels.take(votes.titles), predicted)
        groups = np.unique(np.array(families, dtype=str), return_inverse=True)[1]
        held_out = scoring.HeldOutPredictions(scores, correct, groups, languages)
        try:
            calibrations, reason = scoring.Calibrations.fit(scores, correct, languages), ""
        except scoring.TooFewHeldOut as error:
            calibrations, reason = None, str(error)
        return CalibratedHeldOut(names, held_out, calibrations, reason)

    def measure(self, minimum_precision: float) -> dict[str, object]:
        """Returns precision and coverage on the held-out titles, or why they cannot be computed."""
        from tasks.scoring.confidence import measure_confidence

        if self.calibrations is None:
            return {"n": len(self.names), "reason": self.reason}
        return measure_confidence(self.held_out, (minimum_precision,))

    def select_names(self, minimum_precision: float) -> list[str]:
        """Returns the name that would be added to each held-out title, or "".

        A title's name is selected by calibrations that were fitted without its franchise (cross-fitting).
        """
        if self.calibrations is None:
            return [""] * len(self.names)
        is_selected = self.held_out.cross_selected(minimum_precision)
        return np.where(is_selected, self.names, "").tolist()


@dataclass(frozen=True, eq=False)
class NamePredictor:
    """Predicts names at one level of a vocabulary, with calibrated confidence.

    Attributes:
        candidates: Candidate names.
        held_out_shows: Calibrations for titles on channels with labelled titles.
        held_out_channels: Calibrations for titles on channels without labelled titles. It is the same object
            as ``held_out_shows`` if too few titles are held out, or if the model is of an older version.
    """

    candidates: CandidateNames
    held_out_shows: CalibratedHeldOut
    held_out_channels: CalibratedHeldOut

    @property
    def no_confidence_reason(self) -> str:
        """Why predictions have no confidence; "" if they have one."""
        return self.held_out_shows.reason

    def predict_all(
        self, neighbours: VotingNeighbours, languages: np.ndarray
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Predicts a name for each title.

        Returns:
            Names ("" for a title without votes), scores, and confidences. The confidence is 0 if there are
            too few held-out titles for calibrations.
        """
        indices, scores = self.candidates.predict(neighbours)
        confidence = np.zeros(len(indices))
        for calibrations, rows in self._calibrations(neighbours):
            confidence[rows] = calibrations.confidence(scores[rows], languages[rows])
        return self.candidates.names_at(indices), scores, confidence

    def _calibrations(self, neighbours: VotingNeighbours) -> Iterator[tuple["Calibrations", np.ndarray]]:
        """Yields (calibrations, mask of the titles to which they apply) for both sets of held-out titles."""
        is_on_unlabelled = neighbours.on_unlabelled_channels
        if is_on_unlabelled is None:
            is_on_unlabelled = np.zeros(len(neighbours.ids), dtype=bool)
        for calibrated, rows in (
            (self.held_out_shows, ~is_on_unlabelled),
            (self.held_out_channels, is_on_unlabelled),
        ):
            if calibrated.calibrations is not None:
                yield calibrated.calibrations, rows

    def predict(
        self,
        neighbours: VotingNeighbours,
        languages: np.ndarray,
        minimum_precision: float,
        is_allowed: IsAllowed | None = None,
    ) -> NamePredictions:
        """Predicts a name for each title, and selects the names that reach the minimum precision.

        ``is_allowed`` returns whether a name may be added to a title; None if every name may.
        """
        names, scores, confidence = self.predict_all(neighbours, languages)
        is_selected = np.zeros(len(names), dtype=bool)
        for calibrations, rows in self._calibrations(neighbours):
            is_selected[rows] = calibrations.select(scores[rows], languages[rows], minimum_precision)
        is_selected &= scores > 0
        if is_allowed is not None:
            is_selected &= np.array([is_allowed(title, name) for title, name in enumerate(names)], dtype=bool)
        figures = self.held_out_shows.measure(minimum_precision)
        if self.held_out_channels is not self.held_out_shows:
            figures["channels"] = self.held_out_channels.measure(minimum_precision)
        held_out_names = (
            self.held_out_shows.select_names(minimum_precision),
            self.held_out_channels.select_names(minimum_precision),
        )
        return NamePredictions(names, confidence, is_selected, figures, held_out_names)


def allowed_below(vocabulary: Vocabulary, names_above: Sequence[str]) -> IsAllowed:
    """Returns a function that tests whether a name is one level below the title's name in ``names_above``."""
    return lambda title, name: vocabulary.is_below(names_above[title], name)
