"""Scores the vectors and the predicted categories of models on tonight's held-out titles, for the gate."""

import filecmp
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.arrays import open_array, row_blocks
from storage.artifacts import read_details
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.shapes import Float
from tasks.encoder.title_encoder import TitleEncoder
from tasks.neighbours.similarity import top_neighbours
from tasks.predictor.linear_part import LinearPart
from tasks.predictor.prediction import predict_top, support_of, support_of_names
from tasks.scoring.confidence import contains_label
from tasks.scoring.protocols import CorpusTitles, score_knn

# Arrays of the artifact Vectors that are compared, and their names in messages.
VECTORS = {
    "vectors": "vectors of titles",
    "full": "vectors with airing context (categories, clusters, map)",
    "similarity": "vectors for similar titles",
}
PREDICTOR, PREDICTOR_FORM = "predictor", "title_context"  # predicted categories, and the form of their titles
COMPARED = {**VECTORS, PREDICTOR: "predicted categories"}
HEADLINE, HEADLINE_FORM = "vectors", "title_only"  # vectors of the reported quality, and their form

Qualities = Mapping[str, np.ndarray]  # quality of a model on each query, float64, by key of COMPARED


class NotComparable(Exception):
    """Error: a model cannot embed tonight's titles. The message states the reason."""


class QueryQualities(NamedTuple):
    """Qualities of all models on the same queries (held-out titles); arrays have one entry per query."""

    challenger: Qualities
    others: Mapping[str, Qualities]  # qualities of the other models, by name: CHAMPION, REFERENCE
    titles: np.ndarray  # int64, row of each query in the corpus
    protocols: np.ndarray  # name of the held-out set of each query
    groups: np.ndarray  # int64, id of the family (franchise), which the bootstrap resamples


class TonightsResults(NamedTuple):
    """Vectors and qualities of tonight's model, which are valid for any model with the same title encoder."""

    model: Path  # folder of tonight's Model
    vectors: Path  # folder of tonight's Vectors
    qualities: Qualities  # qualities of tonight's model

    def are_valid_for(self, model: Path) -> bool:
        """Returns whether a Model folder has the same title encoder as tonight's model."""
        names = ("tokens.parquet", "rows.safetensors", "lexicon.json")
        pairs = [(model / name, self.model / name) for name in names]
        return all(file.exists() and filecmp.cmp(file, tonight, shallow=False) for file, tonight in pairs)


def read_headline(scores: Path) -> QueryQualities:
    """Reads the quality of tonight's model on each held-out title from a Scores folder."""
    queries = pq.read_table(scores / "queries.parquet", filters=[("form", "==", HEADLINE_FORM)])
    quality = query_quality(queries["correct"].to_numpy(), queries["precision_at_k"].to_numpy())
    titles, protocols, groups = (queries[name].to_numpy() for name in ("title_id", "protocol", "group"))
    return QueryQualities({HEADLINE: quality}, {}, titles, protocols.astype(str), groups)


class QualityScorer:
    """Scores models on held-out titles of a Corpus.

    Args:
        corpus: Folder of the Corpus.
        rows: Rows of the held-out titles (queries), int64 (queries,).
        k: Number of neighbours that vote.
    """

    def __init__(self, corpus: Path, rows: np.ndarray, k: int) -> None:
        self.corpus, self.rows, self.k = corpus, rows, k
        self._files: OpenCorpus = open_corpus(corpus)
        self._titles = CorpusTitles.from_corpus(self._files)
        self._texts = pq.read_table(corpus / "titles.parquet", columns=["raw_title", "context"])

    def score_challenger(self, vectors: Path, scores: Path) -> Qualities:
        """Returns the qualities of tonight's model, without HEADLINE, which ``read_headline`` returns."""
        queries = pq.read_table(scores / "queries.parquet", columns=["form", "title_id", "predictor_correct"])
        form = PREDICTOR_FORM if PREDICTOR_FORM in queries["form"].unique().to_pylist() else HEADLINE_FORM
        queries = queries.filter(pc.equal(queries["form"], form))  # pyright: ignore[reportAttributeAccessIssue]
        correct = np.zeros(len(self._files))
        correct[queries["title_id"].to_numpy()] = queries["predictor_correct"].to_numpy()
        arrays = {name: open_array(vectors, name) for name in VECTORS if name != HEADLINE}
        return {**self._score_vectors(arrays), PREDICTOR: correct[self.rows]}

    def score_model(self, model: Path, tonight: TonightsResults | None = None) -> Qualities:
        """Embeds tonight's titles with the model of an earlier night and returns the qualities of that model.

        Args:
            model: Folder of the model.
            tonight: Results of tonight's model, which are reused if ``model`` has the same title encoder.

        Raises:
            NotComparable: The model cannot embed tonight's titles.
        """
        try:
            encoder = TitleEncoder.open(model)
            if tonight and tonight.are_valid_for(model):
                full = np.asarray(open_array(tonight.vectors, "full"))
                qualities = {name: tonight.qualities[name] for name in VECTORS}
            else:
                vectors = self._embed(encoder)
                full, qualities = vectors["full"], self._score_vectors(vectors)
            return {**qualities, PREDICTOR: self._predictor_quality(encoder, LinearPart.open(model), full)}
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise NotComparable(
                f"this version of GuideSpace cannot read the model in {model} ({type(error).__name__}: "
                f"{error})"
            ) from error

    def _embed(self, encoder: TitleEncoder) -> dict[str, np.ndarray]:
        """Embeds the held-out and the training titles; returns an array per key of VECTORS.

        An array has a row per title of the Corpus, which is zero for all other titles.
        """
        arrays: dict[str, np.ndarray] = {}
        embedded_rows = np.union1d(self.rows, self._titles.training)
        for block in (embedded_rows[block] for block in row_blocks(len(embedded_rows))):
            raw_titles, contexts, features = self._read_inputs(encoder, block)
            title_only, with_context = encoder.embed_with_context(raw_titles, contexts, features)
            vectors_by_name = {
                "vectors": title_only,
                "full": with_context,
                "similarity": encoder.similarity(features, with_context),
            }
            for name, values in vectors_by_name.items():
                if name not in arrays:
                    arrays[name] = np.zeros((len(self._files), values.shape[1]), dtype=np.float32)
                arrays[name][block] = values
        return arrays

    def _read_inputs(
        self, encoder: TitleEncoder, rows: np.ndarray
    ) -> tuple[list[str], list[list[str]], np.ndarray]:
        """Returns the raw titles, context tokens and sentence features of ``rows`` of the Corpus."""
        raw_titles, contexts = (column.to_pylist() for column in self._texts.take(rows).columns)
        identity = read_details(self.corpus).get("sentences", {}).get("identity")
        if encoder.meaning is None or encoder.meaning.encoder_info["identity"] != identity:
            return raw_titles, contexts, encoder.sentence_features(raw_titles)
        features = encoder.bag.sentence_features(self._files.sentences[rows], self._files.descriptions[rows])
        return raw_titles, contexts, features

    def _predictor_quality(
        self, encoder: TitleEncoder, part: LinearPart | None, vectors: np.ndarray
    ) -> Float[np.ndarray, " queries"]:
        """Returns 1 for each query whose top predicted category is correct, and 0 for all other queries."""
        if not len(self.rows):
            return np.zeros(0)
        label_names, support = self._files.label_names, None
        if part is not None:
            raw_titles, contexts, features = self._read_inputs(encoder, self.rows)
            lookup = encoder.look_up(raw_titles, contexts)
            column_of_label = {name: column for column, name in enumerate(label_names)}
            columns = np.array([column_of_label.get(name, -1) for name in part.label_names])
            model_support = support_of(part.margins(lookup.tokens, lookup.kinds, features))
            support = support_of_names(model_support, columns, len(label_names))
        ids, cosines = top_neighbours(vectors[self.rows], vectors[self._titles.training], self.k)
        top_labels, _ = predict_top(ids, cosines, self._titles.training_labels, len(label_names), support)
        return contains_label(self._titles.labels.take(self.rows), top_labels).astype(np.float64)

    def _score_vectors(self, vectors: Mapping[str, np.ndarray]) -> Qualities:
        """Returns the qualities of a model from its vectors, which are arrays by key of VECTORS."""
        if not len(self.rows):
            return dict.fromkeys(vectors, np.zeros(0))
        return {name: self._query_qualities(values) for name, values in vectors.items()}

    def _query_qualities(self, vectors: np.ndarray) -> np.ndarray:
        """Returns the quality of k-NN with some vectors on each query, float64 (queries,)."""
        judgement = score_knn(self._titles, vectors, self.rows, self.k)
        precision = np.zeros(len(self.rows)) if judgement.precision_at_k is None else judgement.precision_at_k
        return query_quality(judgement.correct, precision)


def neighbour_count(scores: Path) -> int:
    """Reads from a Scores folder the number k of neighbours that voted on each title."""
    return int(read_details(scores)["k"])


def query_quality(correct: np.ndarray, precision_at_k: np.ndarray) -> Float[np.ndarray, " queries"]:
    """Returns the quality of each query, which is the mean of its correctness and its precision at k."""
    return (correct.astype(np.float64) + precision_at_k) / 2
