"""The gate decides whether the new model (the challenger) replaces the served model (the champion).

The challenger is compared with two models on tonight's held-out titles: the champion, and the reference,
which is the oldest promoted model that still has its files. The reference prevents a gradual decline: losses
that are too small to be seen in one night add up over many nights. Champion and reference embed tonight's
titles with their own tokenizers, so all models answer the same queries.

Each kind of vector that users see (VECTORS) is compared. The quality of a query is the mean of its
correctness (0 or 1) and its precision at k. For each comparison, a paired bootstrap over groups gives an
upper confidence bound of mean(challenger − other model). The challenger is promoted unless one of these
bounds is negative. ERROR_PROBABILITY is divided by the number of comparisons (Bonferroni). A champion that
was better by chance on some titles keeps this advantage while the titles are in the guide, so the rate of
wrong refusals is higher than ERROR_PROBABILITY.

A challenger that cannot be compared with the champion is promoted only by a manual decision, or if no model
was promoted before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from storage.arrays import open_array, row_blocks
from storage.artifacts import read_details
from storage.formats.corpus import OpenCorpus, open_corpus
from storage.shapes import Float
from tasks.encoder.title_encoder import TitleEncoder
from tasks.scoring.bootstrap import (
    count_groups,
    draw_groups,
    number_groups,
    percentiles,
    resample_mean,
)
from tasks.scoring.protocols import CorpusTitles, judge_knn

# Arrays of the artifact Vectors that are compared, with their name in messages.
VECTORS = {
    "vectors": "vectors of titles",
    "full": "vectors with airing context (categories, clusters, map)",
    "similarity": "vectors for similar titles",
}
HEADLINE, HEADLINE_FORM = "vectors", "title_only"  # vectors of the reported quality; their form in Scores
# Probability that a challenger that is not worse is refused. In simulated years (test_gate.py), 2 to 4 % of
# the nights were refused without a loss, and all losses of .02 were detected within ten nights.
ERROR_PROBABILITY = 0.02
CHAMPION, REFERENCE = "the champion", "the oldest promoted model"
NO_TITLES = "there are no held-out titles to score the challenger"
OVERRIDE = "run again with --promote (publish.promote=always) to promote it anyway"

Qualities = Mapping[str, np.ndarray]  # float64 (queries,), quality of each query by the names of VECTORS


class NotComparable(Exception):
    """Error: a model cannot embed tonight's titles. The message contains the reason."""


@dataclass(frozen=True, kw_only=True)
class GateDecision:
    """Decision of the gate about a challenger. Numbers that cannot be computed are None."""

    promote: bool  # whether the challenger becomes the champion
    reason: str  # sentence with the compared qualities
    quality: float | None = None  # mean quality of the challenger's headline vectors, 0 to 1
    difference: float | None = None  # mean of challenger − champion, headline vectors
    interval: tuple[float, float] | None = None  # 95 % interval of the difference


class QueryQualities(NamedTuple):
    """Qualities of all models on the same queries (held-out titles), with one array entry per query."""

    challenger: Qualities
    others: Mapping[str, Qualities]  # qualities of the compared models, by CHAMPION and REFERENCE
    titles: np.ndarray  # int64, row of each query in the corpus
    protocols: np.ndarray  # name of the held-out set of each query
    groups: np.ndarray  # int64, id of the family (franchise), which the bootstrap resamples


def read_headline(scores: Path) -> QueryQualities:
    """Reads the qualities of the challenger's headline vectors from Scores, without qualities of others."""
    queries = pq.read_table(scores / "queries.parquet", filters=[("form", "==", HEADLINE_FORM)])
    quality = query_quality(queries["correct"].to_numpy(), queries["precision_at_k"].to_numpy())
    titles, protocols, groups = (queries[name].to_numpy() for name in ("title_id", "protocol", "group"))
    return QueryQualities({HEADLINE: quality}, {}, titles, protocols.astype(str), groups)


class QualityScorer:
    """Scores models on the held-out titles of a Corpus.

    Args:
        corpus: Folder of the Corpus.
        rows: Rows of the held-out titles, int64 [queries].
        k: Number of neighbours that vote.
    """

    def __init__(self, corpus: Path, rows: np.ndarray, k: int) -> None:
        self.corpus, self.rows, self.k = corpus, rows, k
        self._files: OpenCorpus = open_corpus(corpus)
        self._titles = CorpusTitles.of(self._files)
        self._training = self._titles.labelled("train")

    def score_vectors(self, vectors: Path) -> Qualities:
        """Returns the qualities of tonight's Vectors, except HEADLINE, which ``read_headline`` returns."""
        return self._qualities({name: open_array(vectors, name) for name in VECTORS if name != HEADLINE})

    def score_model(self, model: Path) -> Qualities:
        """Embeds tonight's titles with the model of an earlier night and returns the qualities of that model.

        Raises:
            NotComparable: The model cannot embed these titles.
        """
        try:
            return self._qualities(self._embed(TitleEncoder.open(model)))
        except (OSError, KeyError, TypeError, ValueError) as error:
            problem = f"this version of GuideSpace cannot read the model in {model}"
            raise NotComparable(f"{problem} ({type(error).__name__}: {error})") from error

    def _embed(self, encoder: TitleEncoder) -> dict[str, np.ndarray]:
        """Embeds the titles that are needed. Returns arrays by the names of VECTORS, with a row per title."""
        table = pq.read_table(self.corpus / "titles.parquet", columns=["raw_title", "context"])
        identity = read_details(self.corpus).get("sentences", {}).get("identity")
        has_same_sentences = (
            encoder.meaning is not None and encoder.meaning.encoder_info["identity"] == identity
        )
        arrays: dict[str, np.ndarray] = {}
        needed_rows = np.union1d(self.rows, self._training)
        for block in (needed_rows[block] for block in row_blocks(len(needed_rows))):
            raw_titles, contexts = (column.to_pylist() for column in table.take(block).columns)
            sentences = self._files.sentences[block], self._files.descriptions[block]
            dense = encoder.bag.dense(*sentences) if has_same_sentences else encoder.dense(raw_titles)
            title_only, with_context = encoder.embed_with_context(raw_titles, contexts, dense)
            embedded = {
                "vectors": title_only,
                "full": with_context,
                "similarity": encoder.similarity(dense, with_context),
            }
            for name, values in embedded.items():
                if name not in arrays:
                    arrays[name] = np.zeros((len(self._files), values.shape[1]), dtype=np.float32)
                arrays[name][block] = values
        return arrays

    def _qualities(self, vectors: Mapping[str, np.ndarray]) -> Qualities:
        """Returns the qualities of a model from its arrays of vectors."""
        if not len(self.rows):
            return dict.fromkeys(vectors, np.zeros(0))
        return {name: self._quality(values) for name, values in vectors.items()}

    def _quality(self, vectors: np.ndarray) -> np.ndarray:
        """Returns the quality of each query by k-NN on an array of vectors, float64 [queries]."""
        judged = judge_knn(self._titles, vectors, self.rows, self._training, self.k)
        precision = np.zeros(len(self.rows)) if judged.precision_at_k is None else judged.precision_at_k
        return query_quality(judged.correct, precision)


def neighbour_count(scores: Path) -> int:
    """Returns the number k of neighbours that voted on each title, from a Scores folder."""
    return int(read_details(scores)["k"])


def query_quality(correct: np.ndarray, precision_at_k: np.ndarray) -> Float[np.ndarray, " queries"]:
    """Returns the mean of correctness and precision at k of each query."""
    return (correct.astype(np.float64) + precision_at_k) / 2


def decide_promotion(
    answers: QueryQualities,
    rng: np.random.Generator,
    resamples: int = 1000,
    *,
    same_model: bool = False,
    incomparable: str = "",
    first: bool = True,
) -> GateDecision:
    """Decides whether the challenger is promoted, by the rule in the docstring of the module.

    Args:
        answers: Qualities of the models on the same queries.
        rng: Random generator of the bootstrap.
        resamples: Number of resamples of the bootstrap.
        same_model: Whether challenger and champion are the same model.
        incomparable: Reason why the models cannot be compared; "" if they can, or if there is no champion.
        first: Whether no model was promoted before.

    Raises:
        ValueError: The arrays differ in length or contain NaN.
    """
    _check(answers)
    headline = answers.challenger[HEADLINE]
    quality = float(headline.mean()) if len(headline) else None

    def decision(promote: bool, reason: str) -> GateDecision:
        return GateDecision(promote=promote, reason=reason, quality=quality)

    summary = f"quality {quality:.3f} on {len(headline)} titles" if quality is not None else NO_TITLES
    if same_model:
        return decision(False, "same model: the challenger is the champion")
    if incomparable and first:
        return decision(True, f"the first model; {summary}; not compared: {incomparable}")
    if incomparable:
        problem = f"not comparable with the champion, which stays: {incomparable}"
        return decision(False, f"{problem}; {summary}; {OVERRIDE}")
    if CHAMPION not in answers.others:
        return decision(True, f"there is no champion yet; {summary}")
    group_numbers = number_groups(answers.protocols, answers.groups)
    group_count = count_groups(group_numbers)
    if quality is None or group_count < 2:
        problem = f"held-out titles of {group_count} shows are too few to compare the models"
        return decision(False, f"{problem}: the champion stays")
    return _compare(answers, group_numbers, draw_groups(group_count, resamples, rng))


def _check(answers: QueryQualities) -> None:
    """Raises a ValueError if arrays differ in length or contain NaN."""
    for values in (
        array for model in (answers.challenger, *answers.others.values()) for array in model.values()
    ):
        if not values.shape == answers.groups.shape == answers.protocols.shape:
            shapes = f"{values.shape}, {answers.protocols.shape} and {answers.groups.shape}"
            raise ValueError(f"qualities, protocols and groups must be per query, got {shapes}")
        if missing := int(np.isnan(values).sum()):
            problem = f"{missing} of {len(values)} queries have no quality"
            raise ValueError(f"{problem}; score all models on the same queries first")


def _compare(answers: QueryQualities, group_numbers: np.ndarray, counts: np.ndarray) -> GateDecision:
    """Decides by the upper bounds of the differences from each model, for each kind of vectors.

    ``counts`` has the number of occurrences of each group in each resample, [resamples, groups].
    """
    count = len(answers.others) * len(VECTORS)
    worst, refusal = 0.0, ""
    for model, qualities in answers.others.items():
        for name, description in VECTORS.items():
            differences = answers.challenger[name] - qualities[name]
            resampled = resample_mean(differences, group_numbers, counts)
            if (bound := float(np.quantile(resampled, 1 - ERROR_PROBABILITY / count))) < worst:
                worst = bound
                means = f"{answers.challenger[name].mean():.3f} against {qualities[name].mean():.3f}"
                bound_text = (
                    f"at most {bound:+.3f} ({1 - ERROR_PROBABILITY:.0%} confidence in {count} comparisons)"
                )
                refusal = f"worse than {model}: {description}: quality {means} on {len(differences)} titles, "
                refusal += f"difference {bound_text}"
    challenger, champion = answers.challenger[HEADLINE], answers.others[CHAMPION][HEADLINE]
    difference = float((challenger - champion).mean())
    low, high = percentiles(resample_mean(challenger - champion, group_numbers, counts))
    relation = "better than" if low > 0 else "not shown to be worse than"
    text = f"quality {challenger.mean():.3f} against the champion's {champion.mean():.3f} "
    text += f"on {len(challenger)} titles: {difference:+.3f} (95 %: {low:+.3f} to {high:+.3f})"
    return GateDecision(
        promote=not refusal,
        reason=refusal or f"{relation} the champion: {text}",
        quality=float(challenger.mean()),
        difference=difference,
        interval=(low, high),
    )
