"""Predicts names of a vocabulary, and calibrates the confidence of predictions on held-out titles."""

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
    """Titles to predict: the vector of each title, and the support of each label by the linear part."""

    vectors: Float32[np.ndarray, "titles dim"]  # unit norm, or zero for a title of which nothing is known
    support: np.ndarray | None  # float32 (titles, labels); None for models of older versions
    on_unlabelled_channels: np.ndarray  # bool, whether no channel of the title has labelled training titles


class VotingNeighbours(NamedTuple):
    """The k nearest training titles (voters) of each title, nearest first."""

    ids: np.ndarray  # int64 (titles, k), row numbers of voters in the model; -1: no voter
    cosines: np.ndarray  # float32 (titles, k), cosine similarities
    support: np.ndarray | None = None  # see Embedded
    on_unlabelled_channels: np.ndarray | None = None  # see Embedded; None: no title


@dataclass(frozen=True)
class NamePredictions:
    """Predictions at one level of a vocabulary.

    Attributes:
        names: Predicted name (category) of each title; "" without votes.
        confidence: Probability that each name is correct.
        chosen: Whether each name reaches the requested precision and is added to the guide.
        held_out: Precision and coverage on held-out titles (tasks/scoring/confidence.py), or the reason why
            they cannot be computed. The key "channels" has the same for held-out channels.
        held_out_names: Name of each held-out title that would be added, "" if none would, for held-out shows
            and for held-out channels.
    """

    names: list[str]
    confidence: np.ndarray
    chosen: np.ndarray
    held_out: dict[str, object]
    held_out_names: tuple[list[str], list[str]]

    @property
    def written(self) -> list[str]:
        """Name of each title that is added to the guide; "" if none is."""
        return [name if is_chosen else "" for name, is_chosen in zip(self.names, self.chosen, strict=True)]


@dataclass(frozen=True, eq=False)
class CandidateNames:
    """Names (categories) at one level of a vocabulary that can be predicted.

    Attributes:
        names: The distinct names.
        labels: Names of each title of the model, as indices into ``names``.
        of_column: Index of the name of each label of the linear part; -1 for a label without a name.
    """

    names: list[str]
    labels: Ragged
    of_column: np.ndarray

    @staticmethod
    def from_vocabulary(
        title_labels: Sequence[Sequence[str]],
        linear_labels: Sequence[str],
        vocabulary: Vocabulary,
        level: int,
    ) -> "CandidateNames":
        """Looks up the names of all labels.

        Args:
            title_labels: Labels of each title of the model; of held-out titles also rare categories.
            linear_labels: Labels of the linear part: all labels; empty for models of older versions.
            vocabulary: Vocabulary with the names.
            level: Level of the names.
        """
        labels = {*linear_labels} or {label for row in title_labels for label in row}
        names_of_labels = (vocabulary.of_label(label)[level] for label in sorted(labels))
        names = list(dict.fromkeys(filter(None, names_of_labels)))
        number = {name: index for index, name in enumerate(names)}

        @functools.cache
        def number_of(label: str) -> int:
            return number.get(vocabulary.of_label(label)[level], -1)

        rows = [sorted({number_of(label) for label in row} - {-1}) for row in title_labels]
        of_column = np.array([number_of(label) for label in linear_labels], dtype=np.int64)
        return CandidateNames(names, Ragged.from_rows(rows), of_column)

    def predict(self, neighbours: VotingNeighbours) -> tuple[np.ndarray, np.ndarray]:
        """Returns the index of the category predicted for each title (-1 without votes), and its score."""
        inputs = neighbours.ids, neighbours.cosines, self.labels, len(self.names)
        return predict_top(*inputs, self.support(neighbours))

    def texts(self, indices: np.ndarray) -> list[str]:
        """Returns the predicted names from their indices; "" for -1."""
        return [self.names[index] if index >= 0 else "" for index in indices]

    def support(self, neighbours: VotingNeighbours) -> np.ndarray | None:
        """Returns the support of each name by the linear part; None for models of older versions."""
        if neighbours.support is None:
            return None
        return support_of_names(neighbours.support, self.of_column, len(self.names))


IsAllowed = Callable[[int, str], bool]  # whether a name may be added to a title, by the number of the title


@dataclass(frozen=True, eq=False)
class CalibratedHeldOut:
    """Predictions for a set of held-out titles, and calibrations that are fitted to them.

    Attributes:
        names: Category name predicted for each held-out title.
        held_out: Scores and correctness of these names.
        calibrations: Calibrations that map scores to confidence; None if too few titles are held out.
        unsure: Why ``calibrations`` is None; "" if it is not.
    """

    names: list[str]
    held_out: "HeldOutPredictions"
    calibrations: "Calibrations | None"
    unsure: str

    @staticmethod
    def fit(
        candidates: CandidateNames,
        votes: Votes,
        languages: np.ndarray,
        families: Sequence[str],
        is_allowed: IsAllowed | None = None,
    ) -> "CalibratedHeldOut":
        """Predicts names for held-out titles and fits calibrations.

        Args:
            candidates: Names that can be predicted.
            votes: Held-out titles with their neighbours.
            languages, families: Language and franchise of each held-out title.
            is_allowed: Function that returns whether a name would be added to a held-out title; None for all.
        """
        from tasks.scoring import confidence as scoring

        support = None if votes.support is None else np.asarray(votes.support, dtype=np.float32)
        predicted, scores = candidates.predict(VotingNeighbours(votes.neighbours, votes.cosines, support))
        names = candidates.texts(predicted)
        if is_allowed is not None:
            scores = np.where([is_allowed(title, name) for title, name in enumerate(names)], scores, 0.0)
        # A name for a title that has none at this level, or rare ones only, would be added, so it is wrong.
        correct = scoring.contains_label(candidates.labels.take(votes.titles), predicted)
        groups = np.unique(np.array(families, dtype=str), return_inverse=True)[1]
        held_out = scoring.HeldOutPredictions(scores, correct, groups, languages)
        try:
            calibrations, unsure = scoring.Calibrations.fit(scores, correct, languages), ""
        except scoring.TooFewHeldOut as error:
            calibrations, unsure = None, str(error)
        return CalibratedHeldOut(names, held_out, calibrations, unsure)

    def measure(self, minimum_precision: float) -> dict[str, object]:
        """Returns the precision and coverage on the held-out titles, or the reason why there are none."""
        from tasks.scoring.confidence import measure_confidence

        if self.calibrations is None:
            return {"n": len(self.names), "reason": self.unsure}
        return measure_confidence(self.held_out, (minimum_precision,))

    def written(self, minimum_precision: float) -> list[str]:
        """Returns the name that would be added to each held-out title, cross-fitted; "" if none would."""
        if self.calibrations is None:
            return [""] * len(self.names)
        is_selected = self.held_out.cross_selected(minimum_precision)
        return [name if is_chosen else "" for name, is_chosen in zip(self.names, is_selected, strict=True)]


@dataclass(frozen=True, eq=False)
class NamePredictor:
    """Candidate names at one level of a vocabulary, and the calibration of the confidence of predictions.

    Attributes:
        candidates: Candidate names.
        shows: Calibrations by held-out shows.
        channels: Calibrations by held-out channels, for titles on channels without labelled titles; equal to
            ``shows`` if too few titles are held out, or for models of older versions.
    """

    candidates: CandidateNames
    shows: CalibratedHeldOut
    channels: CalibratedHeldOut

    @property
    def unsure(self) -> str:
        """Why there is no confidence; "" if there is."""
        return self.shows.unsure

    def predict_all(
        self, neighbours: VotingNeighbours, languages: np.ndarray
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Predicts a name for each title; returns names ("" without votes), scores, and confidences.

        Confidences are 0 if there are too few held-out titles to calibrate them.
        """
        best, scores = self.candidates.predict(neighbours)
        confidence = np.zeros(len(best))
        for calibrations, rows in self._calibrations(neighbours):
            confidence[rows] = calibrations.confidence(scores[rows], languages[rows])
        return self.candidates.texts(best), scores, confidence

    def _calibrations(self, neighbours: VotingNeighbours) -> Iterator[tuple["Calibrations", np.ndarray]]:
        """Yields (calibrations, mask of the titles for which they are used), one pair per kind of channel."""
        on_unlabelled = neighbours.on_unlabelled_channels
        on_unlabelled = np.zeros(len(neighbours.ids), dtype=bool) if on_unlabelled is None else on_unlabelled
        for calibrated, rows in ((self.shows, ~on_unlabelled), (self.channels, on_unlabelled)):
            if calibrated.calibrations is not None:
                yield calibrated.calibrations, rows

    def predict(
        self,
        neighbours: VotingNeighbours,
        languages: np.ndarray,
        minimum_precision: float,
        is_allowed: IsAllowed | None = None,
    ) -> NamePredictions:
        """Predicts a name for each title, and selects the names that reach the precision.

        ``is_allowed`` returns whether a name may be added to a title; None for all.
        """
        names, scores, confidence = self.predict_all(neighbours, languages)
        is_chosen = np.zeros(len(names), dtype=bool)
        for calibrations, rows in self._calibrations(neighbours):
            is_chosen[rows] = calibrations.select(scores[rows], languages[rows], minimum_precision)
        is_chosen &= scores > 0
        if is_allowed is not None:
            is_chosen &= np.array([is_allowed(title, name) for title, name in enumerate(names)], dtype=bool)
        figures = self.shows.measure(minimum_precision)
        if self.channels is not self.shows:
            figures["channels"] = self.channels.measure(minimum_precision)
        held_out_names = self.shows.written(minimum_precision), self.channels.written(minimum_precision)
        return NamePredictions(names, confidence, is_chosen, figures, held_out_names)


def allowed_below(vocabulary: Vocabulary, names_above: Sequence[str]) -> IsAllowed:
    """Returns a function that tests whether a name is below the name of the title at the level above."""
    return lambda title, name: vocabulary.is_below(names_above[title], name)
