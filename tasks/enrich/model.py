"""Predicts the categories of titles with the predictor of a Model folder (tasks/predictor/prediction.py).

The training titles with labels (categories) are the voters: the nearest voters of a title vote on its
categories. The vector of a voter consists of the last columns of its similarity vector, normalized. The
confidence of predictions is fitted to held-out titles, on whose categories the same voters have voted.

Corrections of users form an external memory as in Kaiser et al. (Learning to remember rare events. ICLR
2017). A memory slot has the vector of a corrected title as key and the corrected categories as value. A title
gets the categories of the nearest slot if no voter is nearer. We differ: the title must also be an edition of
the same show as the slot; docs/log compares alternatives.

torch (200 MB) is imported only after the guide was read, when the memory for reading is free again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import safe_open

from storage.arrays import open_array, unit_rows
from storage.formats.model import CHANNEL_VOTES, RARE_CATEGORIES, Votes, read_spellings, read_votes
from storage.formats.programme_kinds import KIND_COLUMNS
from storage.home.corrections import Correction
from storage.shapes import Float32
from tasks.enrich.errors import EnrichError
from tasks.enrich.name_predictor import (
    CalibratedHeldOut,
    CandidateNames,
    EmbeddedTitles,
    NamePredictions,
    NamePredictor,
    VotingNeighbours,
    allowed_below,
)
from tasks.enrich.sentence_features import sentence_features
from tasks.enrich.titles import GuideTitles
from tasks.enrich.vocabulary import Vocabulary
from tasks.kinds.kinds import KindPrediction
from tasks.predictor.linear_part import LinearPart
from tasks.predictor.prediction import support_of
from tasks.search.airing import channel_ids
from tasks.search.editions import show_name
from tasks.text.titles import parse_title

if TYPE_CHECKING:
    from tasks.encoder.title_encoder import TitleEncoder
    from tasks.neighbours.index import Exact

_COSINE_TOLERANCE = 1e-5  # rounding errors of cosines, which depend on block sizes of matrix products


class CategoryModel:
    """Predicts categories with the files of a Model folder; users' corrections take precedence.

    ``labels``, ``languages`` ("" if unknown) and ``shows`` (show keys) have one entry per title of the model.
    ``voters`` are the row numbers of the training titles with labels.
    """

    def __init__(self, folder: Path, corrections: Mapping[str, Correction] | None = None) -> None:
        self.folder, self.corrections = folder, corrections or {}
        columns = ["show_key", "labels", "split", "language"]
        stored_columns = pq.read_schema(folder / "titles.parquet").names
        rare_columns = [RARE_CATEGORIES] if RARE_CATEGORIES in stored_columns else []
        votes = read_votes(folder) if {*columns} <= {*stored_columns} else None
        if votes is None:
            raise EnrichError(
                "the champion model was made by an older version and has no votes on held-out titles; "
                "run `guidespace nightly --feed …` again"
            )
        self.votes: Votes = votes  # votes on held-out titles, to which the confidence is fitted
        self.channel_votes = read_votes(folder, CHANNEL_VOTES)  # None for models of older versions
        self.spellings = read_spellings(folder)  # most frequent spelling of each label in guides
        lexicon = json.loads((folder / "lexicon.json").read_text(encoding="utf-8"))
        self.max_descriptions = int(lexicon.get("sentences", {}).get("descriptions", 0))  # maximum per title
        table = pq.read_table(folder / "titles.parquet", columns=columns + rare_columns, use_threads=False)
        with safe_open(folder / "rows.safetensors", "numpy") as rows:
            vector_parts = {"rows", "slots"} & {*rows.keys()}
            self.dim = sum(int(rows.get_slice(name).get_shape()[1]) for name in vector_parts)
        self.labels: list[list[str]] = table["labels"].to_pylist()
        self.languages = np.array([code or "" for code in table["language"].to_pylist()], dtype=str)
        self.shows = table["show_key"].to_pylist()
        is_training = np.asarray(table["split"]) == "train"
        self._rare_labels: list[list[str]] = table[RARE_CATEGORIES].to_pylist() if rare_columns else []
        self.voters = np.flatnonzero(is_training & np.fromiter(map(bool, self.labels), bool))
        self.row_of = {show: row for row, show in enumerate(self.shows)}

    @cached_property
    def encoder(self) -> "TitleEncoder":
        """Encoder of titles that the model lacks (60 MB for 10,000 titles, and 120 MB for sentences)."""
        from tasks.encoder.title_encoder import TitleEncoder

        return TitleEncoder.open(self.folder)

    @cached_property
    def titles(self) -> list[str]:
        """Display titles of all titles of the model."""
        return pq.read_table(self.folder / "titles.parquet", columns=["title"])["title"].to_pylist()

    @cached_property
    def _kinds(self) -> pa.Table | None:
        """Table of the kinds of the model's titles; None for a model of an older version."""
        file = self.folder / "titles.parquet"
        has_kinds = {*KIND_COLUMNS.names} <= {*pq.read_schema(file).names}
        return pq.read_table(file, columns=KIND_COLUMNS.names) if has_kinds else None

    def kinds_of(self, row: int) -> list[KindPrediction]:
        """Returns the kinds (film, series …) of a title by row number; [] if the model has no kinds."""
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

    @cached_property
    def linear(self) -> LinearPart | None:
        """Linear part of the predictor; None for models of older versions."""
        return LinearPart.open(self.folder) if self.votes.support is not None else None

    def embed(self, guide: GuideTitles, title_ids: np.ndarray) -> EmbeddedTitles:
        """Embeds titles of a guide by index. New titles are embedded from text, airings and descriptions."""
        rows = np.array([self.row_of.get(guide.show_keys[title], -1) for title in title_ids], dtype=np.int64)
        new_titles = title_ids[rows < 0]
        contexts, texts = guide.contexts(new_titles), guide.descriptions(new_titles, self.max_descriptions)
        raw_titles = [guide.raw_titles[title] for title in new_titles]
        display_titles = [guide.titles[title] for title in new_titles]
        return self._embed_rows(
            rows, raw_titles, contexts, lambda: sentence_features(self.encoder, display_titles, *texts)
        )

    def embed_texts(self, titles: Sequence[str]) -> tuple[np.ndarray, EmbeddedTitles]:
        """Embeds titles that a user has entered. New titles are embedded from their text alone.

        Returns:
            The row number of each title in the model, or -1: int64 (titles,); and the embedded titles.
        """
        shows = (parse_title(title).show_key for title in titles)
        rows = np.array([self.row_of.get(show, -1) for show in shows], dtype=np.int64)
        new_titles = [title for title, row in zip(titles, rows, strict=True) if row < 0]
        compute_features = partial(self.encoder.sentence_features, new_titles)
        return rows, self._embed_rows(rows, new_titles, [()] * len(new_titles), compute_features)

    def _embed_rows(
        self,
        rows: np.ndarray,
        new_titles: Sequence[str],
        contexts: Sequence[Sequence[str]],
        compute_features: Callable[[], np.ndarray],
    ) -> EmbeddedTitles:
        """Embeds titles: reads the vectors of titles of the model, and encodes new titles.

        Args:
            rows: Row number of each title in the model, or -1 for a new title.
            new_titles, contexts: Text and context tokens of the new titles.
            compute_features: Function that returns the sentence features of ``new_titles``.
        """
        vectors, is_new = np.zeros((len(rows), self.dim), dtype=np.float32), rows < 0
        vectors[~is_new] = self.vectors(rows[~is_new])
        linear = self.linear
        support = np.zeros((len(rows), len(linear.label_names)), dtype=np.float32) if linear else None
        if new_titles:
            features = compute_features()
            vectors[is_new] = self.encoder.embed_with_context(new_titles, contexts, features)[1]
            if linear and support is not None:
                support[is_new] = self._support(linear, new_titles, contexts, features)
        on_unlabelled_channels = np.zeros(len(rows), dtype=bool)
        on_unlabelled_channels[is_new] = list(map(self._is_on_unlabelled_channels, contexts))
        if linear and support is not None and (~is_new).any():
            inputs = self._inputs.take(rows[~is_new])
            raw_titles, stored_contexts = (inputs[name].to_pylist() for name in ("raw_title", "context"))
            features = np.asarray(open_array(self.folder, "dense")[rows[~is_new]], dtype=np.float32)
            support[~is_new] = self._support(linear, raw_titles, stored_contexts, features)
            on_unlabelled_channels[~is_new] = list(map(self._is_on_unlabelled_channels, stored_contexts))
        return EmbeddedTitles(vectors, support, on_unlabelled_channels)

    def _is_on_unlabelled_channels(self, context: Sequence[str]) -> bool:
        """Returns whether a context names channels of which none has a labelled training title."""
        channels = channel_ids(context)
        return bool(channels) and channels.isdisjoint(self._labelled_channels)

    @cached_property
    def _labelled_channels(self) -> frozenset[str]:
        """Context tokens of the channels that have labelled training titles."""
        tokens = self._inputs["context"].take(self.voters).combine_chunks().flatten().unique().to_pylist()
        return channel_ids(tokens)

    def _support(
        self, part: LinearPart, titles: Sequence[str], contexts: Sequence[Sequence[str]], features: np.ndarray
    ) -> Float32[np.ndarray, "titles labels"]:
        """Computes the support of each label from text, context tokens and sentence features of titles."""
        lookup = self.encoder.look_up(titles, contexts)
        return support_of(part.margins(lookup.tokens, lookup.kinds, features))

    @cached_property
    def _inputs(self) -> pa.Table:
        """Text and context tokens of each title of the model."""
        return pq.read_table(self.folder / "titles.parquet", columns=["raw_title", "context"])

    def neighbours(self, queries: EmbeddedTitles, exclude: np.ndarray | None = None) -> VotingNeighbours:
        """Finds the nearest voters of each query.

        ``exclude`` contains, for each query, the row number of a title that does not vote, or -1.
        """
        k = self.votes.neighbours.shape[1]
        ids, cosines = self.voters_index.nearest(queries.vectors, k + (exclude is not None))
        ids = np.append(self.voters, -1)[ids]
        if exclude is not None:  # drops the excluded title or, if it is no neighbour, the last neighbour
            columns = np.argsort(ids == exclude[:, None], axis=1, kind="stable")[:, :k]
            ids, cosines = np.take_along_axis(ids, columns, 1), np.take_along_axis(cosines, columns, 1)
        return VotingNeighbours(ids, cosines, queries.support, queries.on_unlabelled_channels)

    def corrected_editions(
        self, titles: Sequence[str], queries: Float32[np.ndarray, "titles dim"], neighbours: VotingNeighbours
    ) -> dict[int, Sequence[str]]:
        """Returns the categories of titles of which another edition was corrected, by position in ``titles``.

        A title gets the categories of the nearest corrected title if both are editions of one show, and no
        voter is nearer. ``queries`` and ``neighbours`` are the vectors and nearest voters of ``titles``.
        """
        slots = np.array([self.row_of[show] for show in self.corrections if show in self.row_of], np.int64)
        if not (len(slots) and len(titles)):
            return {}
        from tasks.neighbours.similarity import top_neighbours

        ids, cosines = top_neighbours(queries, self.vectors(slots), 1)
        is_nearest = (cosines[:, 0] > 0) & (cosines[:, 0] >= neighbours.cosines[:, 0] - _COSINE_TOLERANCE)
        categories_by_position: dict[int, Sequence[str]] = {}
        for position in np.flatnonzero(is_nearest).tolist():
            correction = self.corrections[self.shows[slots[ids[position, 0]]]]
            if show_name(correction.title)[0] == show_name(titles[position])[0]:
                categories_by_position[position] = correction.categories
        return categories_by_position

    @cached_property
    def _true_labels(self) -> list[list[str]]:
        """Labels of each title. Held-out titles also have rare categories, which are never predicted."""
        labels = [*self.labels]
        held_out = [votes.titles for votes in (self.votes, self.channel_votes) if votes is not None]
        for row in np.unique(np.concatenate(held_out)) if self._rare_labels else ():
            labels[row] = [*labels[row], *self._rare_labels[row]]
        return labels

    def name_predictor(
        self, vocabulary: Vocabulary, level: int, predictions_above: NamePredictions | None = None
    ) -> NamePredictor:
        """Creates the predictor of names at one level of a vocabulary, calibrated on held-out titles.

        ``predictions_above`` are the predictions at the level above; a name must lie below the name there.
        """
        true_labels = self._true_labels
        label_names = self.linear.label_names if self.linear else ()
        candidates = CandidateNames.from_vocabulary(true_labels, label_names, vocabulary, level)
        is_in_table = cache(lambda label: bool(vocabulary.of_label(label)[0]))

        def calibrate(votes: Votes, names_above: Sequence[str] | None) -> CalibratedHeldOut:
            # Predictions for titles whose categories are not in the table can be neither right nor wrong.
            in_table = [any(map(is_in_table, true_labels[title])) for title in votes.titles]
            votes = votes.where(np.array(in_table, dtype=bool))
            families = [parse_title(self.shows[row]).family for row in votes.titles]
            is_allowed = None if names_above is None else allowed_below(vocabulary, names_above)
            languages = self.languages[votes.titles]
            return CalibratedHeldOut.fit(candidates, votes, languages, families, is_allowed)

        names_above = predictions_above.held_out_names if predictions_above else (None, None)
        shows = calibrate(self.votes, names_above[0])
        channels = shows if self.channel_votes is None else calibrate(self.channel_votes, names_above[1])
        return NamePredictor(candidates, shows, channels if channels.calibrations else shows)

    def predict(
        self,
        neighbours: VotingNeighbours,
        languages: np.ndarray,
        vocabulary: Vocabulary,
        level: int,
        minimum_precision: float,
        predictions_above: NamePredictions | None = None,
    ) -> NamePredictions:
        """Predicts a name for each title, and selects the names that reach the minimum precision.

        The names are the names of a vocabulary at ``level``. A name is selected only if it is below the name
        that is selected for the title at the level above (``predictions_above``).
        """
        is_allowed = predictions_above and allowed_below(vocabulary, predictions_above.selected_names)
        name_predictor = self.name_predictor(vocabulary, level, predictions_above)
        return name_predictor.predict(neighbours, languages, minimum_precision, is_allowed)
