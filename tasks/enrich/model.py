"""Predicts the categories of titles by a k-NN vote of the training titles of a model (the voters).

Voters are training titles with labels (categories), both in predictions and on the held-out titles to which
the confidence is fitted. Their vectors are the last columns of the similarity vectors, normalized.

Corrections of users form an external memory as in Kaiser et al. (Learning to remember rare events. ICLR
2017). A slot has the vector of a corrected title as key and its categories as value. The categories of the
nearest slot are used if the slot is at least as near as every voter. We differ: the title must also be an
edition of the same show as the slot; docs/log has figures of alternatives.

torch (200 MB) is imported only after the guide was read, when the memory of reading is free again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import safe_open

from storage.arrays import Ragged, open_array, unit_rows
from storage.formats.model import Votes, read_spellings, read_votes
from storage.formats.programme_kinds import COLUMNS
from storage.home.corrections import Correction
from storage.shapes import Float32
from tasks.enrich.errors import EnrichError
from tasks.enrich.titles import GuideTitles
from tasks.enrich.vocabulary import Vocabulary
from tasks.kinds.kinds import KindPrediction
from tasks.search.editions import show_name
from tasks.text.titles import parse_title

if TYPE_CHECKING:
    from tasks.encoder.title_encoder import TitleEncoder
    from tasks.neighbours.index import Exact
    from tasks.scoring.confidence import Calibrations

_CHUNK = 4096  # texts encoded at once
_TOLERANCE = 1e-5  # tolerance for cosines, which depend on block sizes of matrix products


class VotingNeighbours(NamedTuple):
    """The k nearest training titles (voters) of each title, nearest first."""

    ids: np.ndarray  # int64 (titles, k), row numbers of voters in the model; -1: no voter
    cosines: np.ndarray  # float32 (titles, k), cosine similarities


@dataclass(frozen=True)
class Voted:
    """Result of a vote at one level of a vocabulary.

    Attributes:
        names: Predicted name (category) of each title; "" without votes.
        confidence: Probability that each name is correct.
        chosen: Whether each name reaches the requested precision and is added to the guide.
        held_out: Precision and coverage on held-out titles (tasks/scoring/confidence.py), or the reason why
            they cannot be computed.
    """

    names: list[str]
    confidence: np.ndarray
    chosen: np.ndarray
    held_out: dict[str, object]


@dataclass(frozen=True, eq=False)
class Ballot:
    """Candidate names of a vote at one level of a vocabulary, and the calibration of its confidence.

    Attributes:
        names: Candidate names (categories).
        labels: Names of each title of the model, as indices into ``names``.
        scores, correct, languages, groups: For each held-out title: score of the predicted name, whether the
            name is correct, language, and franchise.
        calibrations: Calibrations that map scores to confidence; None if too few titles are held out.
        unsure: Why ``calibrations`` is None; "" if it is not.
    """

    names: list[str]
    labels: Ragged
    scores: np.ndarray
    correct: np.ndarray
    languages: np.ndarray
    groups: np.ndarray
    calibrations: "Calibrations | None"
    unsure: str

    def count(
        self, neighbours: VotingNeighbours, languages: np.ndarray
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Returns predicted names ("" without votes), their scores, and confidences (0 if uncalibrated)."""
        from tasks.scoring.confidence import score_votes

        best, scores = score_votes(neighbours.ids, neighbours.cosines, self.labels, len(self.names))
        names = [self.names[label] if label >= 0 else "" for label in best]
        fitted = self.calibrations
        return names, scores, np.zeros(len(best)) if fitted is None else fitted.confidence(scores, languages)


class CategoryModel:
    """Predictor of categories by a vote of the training titles of a Model folder, or by a correction."""

    def __init__(self, folder: Path, corrections: Mapping[str, Correction] | None = None) -> None:
        self.folder, self.corrections = folder, corrections or {}
        columns = ["show_key", "labels", "split", "language"]
        names = pq.read_schema(folder / "titles.parquet").names
        votes = read_votes(folder) if {*columns} <= {*names} else None
        if votes is None:
            why = "the champion model was made by an older version, which stored no votes on held-out titles"
            raise EnrichError(f"{why}; run `guidespace nightly --feed …` again")
        self.votes: Votes = votes
        self.spellings = read_spellings(folder)
        lexicon = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
        self.descriptions = int(lexicon.get("sentences", {}).get("descriptions", 0))  # texts per title
        table = pq.read_table(folder / "titles.parquet", columns=columns, use_threads=False)
        with safe_open(folder / "rows.safetensors", "numpy") as rows:
            parts = {"rows", "slots"} & {*rows.keys()}
            self.dim = sum(int(rows.get_slice(name).get_shape()[1]) for name in parts)
        self.labels: list[list[str]] = table["labels"].to_pylist()
        self.languages = np.array([code or "" for code in table["language"].to_pylist()], dtype=str)
        self.shows = table["show_key"].to_pylist()
        training = np.asarray(table["split"]) == "train"
        labelled = np.array([bool(labels) for labels in self.labels], dtype=bool)
        self.voters = np.flatnonzero(training & labelled)
        self.row_of = {show: row for row, show in enumerate(self.shows)}

    @cached_property
    def encoder(self) -> "TitleEncoder":
        """Encoder of titles that the model lacks (60 MB for 10,000 titles, and 120 MB for sentences)."""
        from tasks.encoder.title_encoder import TitleEncoder

        return TitleEncoder.open(self.folder)

    @cached_property
    def titles(self) -> list[str]:
        """Display title of each title of the model."""
        return pq.read_table(self.folder / "titles.parquet", columns=["title"])["title"].to_pylist()

    @cached_property
    def _kinds(self) -> pa.Table | None:
        """Table of the kinds of the model's titles; None for a model of an older version."""
        names = pq.read_schema(self.folder / "titles.parquet").names
        columns = COLUMNS.names
        return (
            pq.read_table(self.folder / "titles.parquet", columns=columns) if {*columns} <= {*names} else None
        )

    def kinds_of(self, row: int) -> list[KindPrediction]:
        """Returns the kinds (film, series …) of a title of the model. Empty for models without kinds."""
        if self._kinds is None:
            return []
        return [KindPrediction(*values) for values in zip(*self._kinds.slice(row, 1).to_pylist()[0].values())]

    @cached_property
    def voters_index(self) -> "Exact":
        """Search index of the vectors of the voters."""
        from tasks.neighbours.index import Exact

        return Exact(self.vectors(self.voters))

    def vectors(self, rows: np.ndarray) -> Float32[np.ndarray, "titles dim"]:
        """Returns the vectors, with airing context and unit norm, of titles of the model by row number."""
        similarity = open_array(self.folder, "similarity")
        return unit_rows(np.asarray(similarity[rows][:, -self.dim :], dtype=np.float32))

    def embed(self, guide: GuideTitles, titles: np.ndarray) -> Float32[np.ndarray, "titles dim"]:
        """Returns unit vectors of titles of a guide. The encoder computes those that the model lacks."""
        rows = np.array([self.row_of.get(guide.show_key[title], -1) for title in titles], dtype=np.int64)
        new = np.flatnonzero(rows < 0)
        contexts, described = guide.contexts(titles[new]), guide.descriptions(titles[new], self.descriptions)
        queries = np.zeros((len(titles), self.dim), dtype=np.float32)
        queries[rows >= 0] = self.vectors(rows[rows >= 0])
        if len(new):
            raw, display = (
                [names[title] for title in titles[new]] for names in (guide.raw_title, guide.title)
            )
            queries[new] = self.encoder.embed_with_context(raw, contexts, self._dense(display, *described))[1]
        return queries

    def neighbours(
        self, queries: Float32[np.ndarray, "titles dim"], exclude: np.ndarray | None = None
    ) -> VotingNeighbours:
        """Finds the nearest voters of each query, without the title of row ``exclude`` (-1: none)."""
        k = self.votes.neighbours.shape[1]
        ids, cosines = self.voters_index.nearest(queries, k + (exclude is not None))
        ids = np.append(self.voters, -1)[ids]
        if exclude is not None:  # drop the title itself, or the last neighbour
            others = np.argsort(ids == exclude[:, None], axis=1, kind="stable")[:, :k]
            ids, cosines = np.take_along_axis(ids, others, 1), np.take_along_axis(cosines, others, 1)
        return VotingNeighbours(ids, cosines)

    def corrected_editions(
        self, titles: Sequence[str], queries: Float32[np.ndarray, "titles dim"], neighbours: VotingNeighbours
    ) -> dict[int, Sequence[str]]:
        """Returns the corrected categories of other editions of corrected shows, by position in ``titles``.

        The nearest corrected title must be an edition of the same show, and at least as near as all voters.
        """
        slots = np.array([self.row_of[show] for show in self.corrections if show in self.row_of], np.int64)
        if not (len(slots) and len(titles)):
            return {}
        from tasks.neighbours.similarity import top_neighbours

        ids, cosines = top_neighbours(queries, self.vectors(slots), 1)
        is_near = (cosines[:, 0] > 0) & (cosines[:, 0] >= neighbours.cosines[:, 0] - _TOLERANCE)
        labels_of: dict[int, Sequence[str]] = {}
        for position in np.flatnonzero(is_near):
            slot = self.corrections[self.shows[slots[ids[position, 0]]]]
            if show_name(slot.title)[0] == show_name(titles[int(position)])[0]:
                labels_of[int(position)] = slot.categories
        return labels_of

    def ballot(self, vocabulary: Vocabulary, level: int) -> "Ballot":
        """Returns the candidates at one level of a vocabulary, and calibrates the vote on held-out titles."""
        from tasks.scoring import confidence as scoring

        names, labels = self._names(vocabulary, level)
        with_labels = np.flatnonzero(labels.lengths[self.votes.titles] > 0)
        truth = labels.take(self.votes.titles[with_labels])
        votes = self.votes.neighbours[with_labels], self.votes.cosines[with_labels]
        answers, scores = scoring.score_votes(*votes, labels, len(names))
        correct = scoring.contains_label(truth, answers)
        languages = self.languages[self.votes.titles[with_labels]]
        families = [parse_title(self.shows[row]).family for row in self.votes.titles[with_labels]]
        groups = np.unique(np.array(families, dtype=str), return_inverse=True)[1]
        try:
            calibrations, unsure = scoring.Calibrations.fit(scores, correct, languages), ""
        except scoring.TooFewHeldOut as error:
            calibrations, unsure = None, str(error)
        return Ballot(names, labels, scores, correct, languages, groups, calibrations, unsure)

    def vote(
        self,
        neighbours: VotingNeighbours,
        languages: np.ndarray,
        vocabulary: Vocabulary,
        level: int,
        minimum_precision: float,
    ) -> Voted:
        """Predicts a name at a level of a vocabulary for each title, and which names reach the precision."""
        from tasks.scoring import confidence as scoring

        ballot = self.ballot(vocabulary, level)
        names, scores, confidence = ballot.count(neighbours, languages)
        if ballot.calibrations is None:
            reason = {"n": len(ballot.scores), "reason": ballot.unsure}
            return Voted(names, confidence, confidence > 0, reason)
        held_out = ballot.scores, ballot.correct
        crossed = scoring.cross_fitted(*held_out, ballot.groups, ballot.languages)
        figures = scoring.measure_confidence(crossed, *held_out, ballot.languages, (minimum_precision,))
        chosen = ballot.calibrations.select(scores, languages, minimum_precision)
        return Voted(names, confidence, chosen, figures)

    def _names(self, vocabulary: Vocabulary, level: int) -> tuple[list[str], Ragged]:
        """Returns the distinct names at a level of a vocabulary, and the name indices of each model title."""
        name_by_label = {
            label: vocabulary.of_label(label)[level] for title_labels in self.labels for label in title_labels
        }
        names = list(dict.fromkeys(filter(None, name_by_label.values())))
        number = {name: index for index, name in enumerate(names)}
        numbers = {label: number[name] for label, name in name_by_label.items() if name}
        rows = [
            sorted({numbers[label] for label in title_labels if label in numbers})
            for title_labels in self.labels
        ]
        return names, Ragged.from_rows(rows)

    def _dense(self, display: list[str], owners: np.ndarray, texts: list[str]) -> np.ndarray | None:
        """Computes the sentence and description vectors of titles. Returns None without a sentence encoder.

        Args:
            display: Display titles.
            owners: Index in ``display`` of the title of each description.
            texts: Descriptions.
        """
        meaning = self.encoder.meaning
        if meaning is None or meaning.encoder is None:
            return None
        description_sums = np.zeros((len(display), meaning.encoder.dim), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            np.add.at(description_sums, owners[chunk], meaning.encoder.encode(texts[chunk]))
        display_texts = [text if any(map(str.isalnum, text)) else "" for text in display]
        parts = [
            meaning.encoder.encode(display_texts[start : start + _CHUNK])
            for start in range(0, len(display_texts), _CHUNK)
        ]
        return self.encoder.bag.dense(np.concatenate(parts), unit_rows(description_sums))
