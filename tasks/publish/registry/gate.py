"""The gate decides whether the new model (the challenger) replaces the served model (the champion).

Both models predict the categories of tonight's held-out titles, the queries. The quality of a query is the
mean of its correctness (0 or 1) and its precision at k. A paired bootstrap that resamples groups of related
titles gives 95 % intervals. The challenger is promoted unless one of these intervals is entirely below its
limit:

    mean(challenger − champion)    limit 0
    mean(challenger)               limit: best quality of the last 30 promoted models

The second condition prevents a gradual decline in many small steps. A challenger that cannot be compared is
not promoted without a manual decision, unless no model was promoted before.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from storage.arrays import row_blocks
from storage.formats.corpus import open_corpus
from storage.shapes import Float
from tasks.encoder.title_encoder import TitleEncoder
from tasks.scoring.bootstrap import count_groups, draw_groups, number_groups, percentiles, resample_mean
from tasks.scoring.protocols import CorpusTitles, judge_knn

MAX_PROMOTED = 30  # number of latest promoted models whose qualities are compared
FORM = "title_only"  # the models see the titles without airing context
NO_TITLES = "there are no held-out titles to score the challenger"
OVERRIDE = "run again with --promote (publish.promote=always) to promote it anyway"


class NotComparable(Exception):
    """Raised if the champion cannot embed tonight's titles; the message has the reason."""


@dataclass(frozen=True, kw_only=True)
class GateDecision:
    """Decision of the gate about a challenger; numbers that cannot be computed are None."""

    promote: bool  # whether the challenger becomes the champion
    reason: str  # sentence with the compared qualities
    quality: float | None = None  # mean quality of the challenger, 0 to 1
    difference: float | None = None  # mean of challenger − champion
    interval: tuple[float, float] | None = None  # 95 % interval of ``difference``


class QueryQualities(NamedTuple):
    """Qualities of both models on the same held-out titles (queries); arrays have one entry per query."""

    challenger: np.ndarray  # float64, qualities of the challenger, 0 to 1
    champion: np.ndarray | None  # float64, qualities of the champion; None if it is not compared
    protocols: np.ndarray  # name of the held-out set of each query
    groups: np.ndarray  # int64, id of the group that the bootstrap resamples, such as a show


def score_models(corpus: Path, scores: Path, champion: Path | None) -> QueryQualities:
    """Returns the quality of both models on each held-out title of a Corpus.

    Args:
        corpus: Folder of tonight's Corpus.
        scores: Folder of tonight's Scores, which contain the results of the challenger.
        champion: Model folder of the champion, which is scored here; None to score only the challenger.

    Raises:
        NotComparable: The champion cannot embed these titles.
    """
    queries = pq.read_table(scores / "queries.parquet", filters=[("form", "==", FORM)])
    quality = query_quality(queries["correct"].to_numpy(), queries["precision_at_k"].to_numpy())
    rows = queries["title_id"].to_numpy()
    champion_quality = champion and _champion_quality(corpus, champion, rows, neighbour_count(scores))
    protocols, groups = queries["protocol"].to_numpy().astype(str), queries["group"].to_numpy()
    return QueryQualities(quality, champion_quality, protocols, groups)


def neighbour_count(scores: Path) -> int:
    """Returns the number k of neighbours that voted on each title, from a Scores folder."""
    return int(_details(scores)["k"])


def _details(artifact: Path) -> dict[str, Any]:
    """Returns the field "details" of artifact.json in the folder of an artifact."""
    return json.loads((artifact / "artifact.json").read_text(encoding="utf-8"))["details"]


def query_quality(correct: np.ndarray, precision_at_k: np.ndarray) -> Float[np.ndarray, " queries"]:
    """Returns the mean of correctness and precision at k of each query."""
    return (correct.astype(np.float64) + precision_at_k) / 2


def _champion_quality(corpus: Path, champion: Path, rows: np.ndarray, k: int) -> np.ndarray:
    """Returns the quality of the champion on the titles ``rows`` of a Corpus, float64 [rows]."""
    corpus_files = open_corpus(corpus)
    titles = CorpusTitles.of(corpus_files)
    training = titles.labelled("train")
    raw_titles = pq.read_table(corpus / "titles.parquet", columns=["raw_title"])["raw_title"]
    try:
        encoder, identity = TitleEncoder.open(champion), _details(corpus).get("sentences", {}).get("identity")
        reads_dense = encoder.meaning is not None and encoder.meaning.encoder_info["identity"] == identity
        vectors = np.zeros((len(corpus_files), encoder.width), dtype=np.float32)
        needed = np.union1d(rows, training)
        for block in (needed[block] for block in row_blocks(len(needed))):
            dense_inputs = corpus_files.sentences[block], corpus_files.descriptions[block]
            dense = encoder.bag.dense(*dense_inputs) if reads_dense else None
            vectors[block] = encoder.embed(raw_titles.take(block).to_pylist(), dense)
    except (OSError, KeyError, TypeError, ValueError) as error:
        problem = f"this version of GuideSpace cannot read the champion's model in {champion}"
        raise NotComparable(f"{problem} ({type(error).__name__}: {error})") from error
    judged = judge_knn(titles, vectors, rows, training, k)
    precision = np.zeros(len(rows)) if judged.precision_at_k is None else judged.precision_at_k
    return query_quality(judged.correct, precision)


def decide_promotion(
    qualities: QueryQualities,
    past_qualities: Sequence[float],
    rng: np.random.Generator,
    resamples: int = 1000,
    *,
    same_model: bool = False,
    incomparable: str = "",
    first: bool = True,
) -> GateDecision:
    """Decides whether the challenger is promoted, by the rule in the docstring of the module.

    Args:
        qualities: Qualities of both models on the same queries.
        past_qualities: Qualities of the models promoted before, oldest first; only the last MAX_PROMOTED
            are used.
        rng: Random generator of the bootstrap.
        resamples: Number of resamples of the bootstrap.
        same_model: Whether challenger and champion are the same model.
        incomparable: Reason why the models cannot be compared; "" if they can, or if there is no champion.
        first: Whether no model was promoted before.

    Raises:
        ValueError: The arrays differ in length or contain NaN.
    """
    challenger, champion, protocols, groups = qualities
    for values in (challenger, *(() if champion is None else (champion,))):
        if not values.shape == groups.shape == protocols.shape:
            shapes = f"{values.shape}, {protocols.shape} and {groups.shape}"
            raise ValueError(f"qualities, protocols and groups must be per query, got {shapes}")
        if missing := int(np.isnan(values).sum()):
            problem = f"{missing} of {len(values)} queries have no quality"
            raise ValueError(f"{problem}; score both models on the same queries first")
    quality = float(challenger.mean()) if len(challenger) else None

    def make_decision(promote: bool, reason: str) -> GateDecision:
        return GateDecision(promote=promote, reason=reason, quality=quality)

    summary = f"quality {quality:.3f} on {len(challenger)} titles" if quality is not None else NO_TITLES
    if same_model:
        return make_decision(False, "same model: the challenger is the champion")
    if incomparable and first:
        return make_decision(True, f"the first model; {summary}; not compared: {incomparable}")
    if incomparable:
        problem = f"not comparable with the champion, which stays: {incomparable}"
        return make_decision(False, f"{problem}; {summary}; {OVERRIDE}")
    if champion is None:
        return make_decision(True, f"there is no champion yet; {summary}")
    group_numbers = number_groups(protocols, groups)
    group_count = count_groups(group_numbers)
    if quality is None or group_count < 2:
        problem = f"held-out titles of {group_count} shows are too few to compare the models"
        return make_decision(False, f"{problem}: the champion stays")
    group_counts = draw_groups(group_count, resamples, rng)
    return _compare(challenger, champion, group_numbers, group_counts, list(past_qualities)[-MAX_PROMOTED:])


def _compare(
    challenger: np.ndarray,
    champion: np.ndarray,
    group_numbers: np.ndarray,
    group_counts: np.ndarray,
    past: Sequence[float],
) -> GateDecision:
    """Decides by the bootstrap intervals of the challenger's quality, and of its gain over the champion.

    Args:
        challenger: Quality of the challenger per query.
        champion: Quality of the champion per query.
        group_numbers: Group of each query, from 0.
        group_counts: Number of occurrences of each group in each resample, [resamples, groups].
        past: Qualities of the models promoted before.
    """
    quality, difference = float(challenger.mean()), float((challenger - champion).mean())
    low, high = percentiles(resample_mean(challenger - champion, group_numbers, group_counts))
    quality_low, quality_high = percentiles(resample_mean(challenger, group_numbers, group_counts))
    best, promote = max(past, default=0.0), False
    if high < 0:
        reason = "worse than the champion"
    elif quality_high < best:
        reason = f"below the best of the last {len(past)} promoted models: the 95 % interval of the quality, "
        reason += f"{quality_low:.3f} to {quality_high:.3f}, is below {best:.3f}"
    else:
        promote = True
        reason = f"{'better than' if low > 0 else 'not shown to be worse than'} the champion"
    versus = f"quality {quality:.3f} against the champion's {float(champion.mean()):.3f}"
    interval = f"{difference:+.3f} (95 %: {low:+.3f} to {high:+.3f})"
    return GateDecision(
        promote=promote,
        reason=f"{reason}: {versus} on {len(challenger)} titles: {interval}",
        quality=quality,
        difference=difference,
        interval=(low, high),
    )
