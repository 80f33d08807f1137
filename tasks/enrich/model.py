"""The model that serves, asked for the categories of titles: labels it knows, else the vote of the nearest.

What a person corrected is a memory beside it, as in Kaiser et al. (Learning to remember rare events. ICLR
2017): a slot's key is the title's vector, its value the categories. The nearest slot answers if it is nearer
than every voter. We differ: only if it is an edition of the same show; docs/log has what others came to.

Only labelled training titles vote, as they did on the held-out titles that the confidence is fitted on. Their
vectors are the part of the similarity vectors behind the meaning, at unit norm.

torch (200 MB) is imported where it is first needed: after the guide was read and asked about its titles.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from safetensors import safe_open

from storage.arrays import Ragged, open_array, unit_rows
from storage.corrections import Correction
from storage.formats.model import Votes, read_spellings, read_votes
from storage.shapes import Float32
from tasks.enrich.errors import EnrichError
from tasks.enrich.titles import GuideTitles
from tasks.enrich.vocabulary import Vocabulary
from tasks.search.editions import show_name
from tasks.text.titles import parse_title

if TYPE_CHECKING:
    from tasks.encoder.title_encoder import TitleEncoder
    from tasks.neighbours.index import Exact
    from tasks.scoring.confidence import Calibrations

_CHUNK = 4096  # texts encoded, titles compared at a time
_EQUAL = 1e-5  # cosines of the same two titles, computed in other blocks, are nearer than this


class Neighbours(NamedTuple):
    """Of some titles: rows of the model, int64 (titles, k), -1 where absent; float32 cosines."""

    ids: np.ndarray
    cosines: np.ndarray


@dataclass(frozen=True)
class Voted:
    """What one level of a vocabulary says of some titles.

    Attributes:
        names: The name put first of each title; empty where none is voted for.
        confidence: The probability that it is right.
        chosen: Whether it is written.
        held_out: Figures of held-out titles (tasks/scoring/confidence.py), or why there are none.
    """

    names: list[str]
    confidence: np.ndarray
    chosen: np.ndarray
    held_out: dict[str, object]


@dataclass(frozen=True, eq=False)
class Ballot:
    """What can be voted for at one level of a vocabulary, and the held-out titles that say how sure it is.

    Attributes:
        names: What is voted for.
        labels: Which of the names each title of the model has.
        scores, correct, spoken, groups: Of held-out titles: the score of the name put first, whether it is
            right, the language and the franchise.
        calibrations: Score to confidence; None where too few are held out.
        unsure: Why there are none.
    """

    names: list[str]
    labels: Ragged
    scores: np.ndarray
    correct: np.ndarray
    spoken: np.ndarray
    groups: np.ndarray
    calibrations: "Calibrations | None"
    unsure: str

    def count(
        self, neighbours: Neighbours, languages: np.ndarray
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Names put first (empty where none is voted for), their scores and confidences (0 without any)."""
        from tasks.scoring.confidence import score_votes

        first, scores = score_votes(neighbours.ids, neighbours.cosines, self.labels, len(self.names))
        names = [self.names[label] if label >= 0 else "" for label in first]
        sure = self.calibrations
        return names, scores, np.zeros(len(first)) if sure is None else sure.confidence(scores, languages)


class CategoryModel:
    """A Model folder, and what a person corrected, by show key."""

    def __init__(self, folder: Path, corrections: Mapping[str, Correction] | None = None) -> None:
        self.folder, self.corrections = folder, corrections or {}
        columns = ["show_key", "labels", "split", "language"]
        names = pq.read_schema(folder / "titles.parquet").names
        votes = read_votes(folder) if {*columns} <= {*names} else None
        if votes is None:
            why = "the model that serves was made by an older version, which kept no votes on held-out titles"
            raise EnrichError(f"{why}; run `guidespace nightly --feed …` again")
        self.votes: Votes = votes
        self.spellings = read_spellings(folder)
        lexicon = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
        self.descriptions = int(lexicon.get("sentences", {}).get("descriptions", 0))  # texts a title
        table = pq.read_table(folder / "titles.parquet", columns=columns, use_threads=False)
        with safe_open(folder / "rows.safetensors", "numpy") as rows:
            parts = {"rows", "slots"} & {*rows.keys()}
            self.dim = sum(int(rows.get_slice(name).get_shape()[1]) for name in parts)
        self.labels: list[list[str]] = table["labels"].to_pylist()
        self.languages = np.array([code or "" for code in table["language"].to_pylist()], dtype=str)
        self.shows = table["show_key"].to_pylist()
        training = np.asarray(table["split"]) == "train"
        self.voters = np.flatnonzero(training & np.array([bool(own) for own in self.labels], dtype=bool))
        self.row_of = {show: row for row, show in enumerate(self.shows)}

    @cached_property
    def encoder(self) -> "TitleEncoder":
        """Of titles that the model lacks; 60 MB for 10,000 titles, and their sentence vectors 120 MB more."""
        from tasks.encoder.title_encoder import TitleEncoder

        return TitleEncoder.open(self.folder)

    @cached_property
    def titles(self) -> list[str]:
        """Titles as people read them."""
        return pq.read_table(self.folder / "titles.parquet", columns=["title"])["title"].to_pylist()

    @cached_property
    def voters_index(self) -> "Exact":
        """The voters, checked once."""
        from tasks.neighbours.index import Exact

        return Exact(self.vectors(self.voters))

    def vectors(self, rows: np.ndarray) -> Float32[np.ndarray, "titles dim"]:
        """Unit vectors of the model's titles as they air."""
        whole = open_array(self.folder, "similarity")
        return unit_rows(np.asarray(whole[rows][:, -self.dim :], dtype=np.float32))

    def embed(self, guide: GuideTitles, wanted: np.ndarray) -> Float32[np.ndarray, "titles dim"]:
        """Unit vectors of titles of a guide as they air: the model's, or of what the guide says."""
        rows = np.array([self.row_of.get(guide.show_key[title], -1) for title in wanted], dtype=np.int64)
        new = np.flatnonzero(rows < 0)
        contexts, described = guide.contexts(wanted[new]), guide.descriptions(wanted[new], self.descriptions)
        queries = np.zeros((len(wanted), self.dim), dtype=np.float32)
        queries[rows >= 0] = self.vectors(rows[rows >= 0])
        if len(new):
            raw, shown = ([names[title] for title in wanted[new]] for names in (guide.raw_title, guide.title))
            queries[new] = self.encoder.embed_with_context(raw, contexts, self._dense(shown, *described))[1]
        return queries

    def neighbours(
        self, queries: Float32[np.ndarray, "titles dim"], own: np.ndarray | None = None
    ) -> Neighbours:
        """The voters nearest to vectors; ``own`` are rows that do not vote on themselves (-1: none)."""
        k = self.votes.neighbours.shape[1]
        ids, cosines = self.voters_index.nearest(queries, k + (own is not None))
        ids = np.append(self.voters, -1)[ids]
        if own is not None:  # leave it out, else the last one
            others = np.argsort(ids == own[:, None], axis=1, kind="stable")[:, :k]
            ids, cosines = np.take_along_axis(ids, others, 1), np.take_along_axis(cosines, others, 1)
        return Neighbours(ids, cosines)

    def corrected_editions(
        self, titles: Sequence[str], queries: Float32[np.ndarray, "titles dim"], neighbours: Neighbours
    ) -> dict[int, Sequence[str]]:
        """Labels of those titles whose nearest corrected title is an edition of the same show and as near as
        the nearest voter, by place.
        """
        slots = np.array([self.row_of[show] for show in self.corrections if show in self.row_of], np.int64)
        if not (len(slots) and len(titles)):
            return {}
        from tasks.neighbours.similarity import top_neighbours

        ids, cosines = top_neighbours(queries, self.vectors(slots), 1)
        near = (cosines[:, 0] > 0) & (cosines[:, 0] >= neighbours.cosines[:, 0] - _EQUAL)
        found: dict[int, Sequence[str]] = {}
        for place in np.flatnonzero(near):
            slot = self.corrections[self.shows[slots[ids[place, 0]]]]
            if show_name(slot.title)[0] == show_name(titles[int(place)])[0]:
                found[int(place)] = slot.categories
        return found

    def ballot(self, vocabulary: Vocabulary, level: int) -> "Ballot":
        """What the model's titles vote for at a level, calibrated on the held-out ones."""
        from tasks.scoring import confidence as sure

        names, labels = self._names(vocabulary, level)
        held = np.flatnonzero(labels.lengths[self.votes.titles] > 0)
        truth = labels.take(self.votes.titles[held])
        votes = self.votes.neighbours[held], self.votes.cosines[held]
        answers, scores = sure.score_votes(*votes, labels, len(names))
        correct, spoken = sure.holds(truth, answers), self.languages[self.votes.titles[held]]
        families = [parse_title(self.shows[row]).family for row in self.votes.titles[held]]
        groups = np.unique(np.array(families, dtype=str), return_inverse=True)[1]
        try:
            calibrations, unsure = sure.Calibrations.fit(scores, correct, spoken), ""
        except sure.TooFewHeldOut as error:
            calibrations, unsure = None, str(error)
        return Ballot(names, labels, scores, correct, spoken, groups, calibrations, unsure)

    def vote(
        self,
        neighbours: Neighbours,
        languages: np.ndarray,
        vocabulary: Vocabulary,
        level: int,
        minimum_precision: float,
    ) -> Voted:
        """The name at a level that each title's neighbours vote for, and whether to write it."""
        from tasks.scoring import confidence as sure

        ballot = self.ballot(vocabulary, level)
        names, scores, confidence = ballot.count(neighbours, languages)
        if ballot.calibrations is None:
            reason = {"n": len(ballot.scores), "reason": ballot.unsure}
            return Voted(names, confidence, confidence > 0, reason)
        held = ballot.scores, ballot.correct
        crossed = sure.cross_fitted(*held, ballot.groups, ballot.spoken)
        figures = sure.measure_confidence(crossed, *held, ballot.spoken, (minimum_precision,))
        chosen = ballot.calibrations.reach(scores, languages, minimum_precision)
        return Voted(names, confidence, chosen, figures)

    def _names(self, vocabulary: Vocabulary, level: int) -> tuple[list[str], Ragged]:
        """Names of a level, and which of them each title of the model has."""
        of_label = {label: vocabulary.of_label(label)[level] for own in self.labels for label in own}
        names = list(dict.fromkeys(filter(None, of_label.values())))
        number = {name: place for place, name in enumerate(names)}
        numbers = {label: number[name] for label, name in of_label.items() if name}
        rows = [sorted({numbers[label] for label in own if label in numbers}) for own in self.labels]
        return names, Ragged.from_rows(rows)

    def _dense(self, shown: list[str], owners: np.ndarray, texts: list[str]) -> np.ndarray | None:
        """Dense inputs of titles, as they are shown, and of what describes some of them."""
        meaning = self.encoder.meaning
        if meaning is None or meaning.encoder is None:
            return None
        said = np.zeros((len(shown), meaning.encoder.dim), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            np.add.at(said, owners[chunk], meaning.encoder.encode(texts[chunk]))
        telling = [text if any(map(str.isalnum, text)) else "" for text in shown]
        parts = [meaning.encoder.encode(telling[at : at + _CHUNK]) for at in range(0, len(telling), _CHUNK)]
        return self.encoder.bag.dense(np.concatenate(parts), unit_rows(said))
