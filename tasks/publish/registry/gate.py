"""The gate: may tonight's model take the champion's place?

The champion embeds tonight's held-out titles with its own tokenizer, so both models answer the same
questions. A query's quality is the mean of "its top label is right" and its precision at k. The challenger is
promoted if the 95 % interval of mean(challenger − champion), a paired bootstrap over groups, does not lie
wholly below 0, nor that of its own mean wholly below the best of the last 30 promoted: else many small steps
could carry quality down.

A challenger that cannot be compared is not promoted until a person says so, unless no model was promoted
before.
"""

import hashlib
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
from tasks.scoring.protocols import Titles, judge_knn

REMEMBERED = 30  # promoted models
FORM, NO_TITLES = "title_only", "no held-out title to judge the challenger by"
ANYWAY = "run again with --promote (publish.promote=always) to promote it all the same"


class NotComparable(Exception):
    """The champion cannot embed today's titles; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Of the gate; numbers that nothing supports are None."""

    promote: bool  # whether the alias moves
    reason: str  # in plain words with the numbers
    quality: float | None = None  # mean of the challenger, 0 to 1
    difference: float | None = None  # mean of challenger − champion
    interval: tuple[float, float] | None = None  # 95 % interval of the difference


class Answers(NamedTuple):
    """Quality of each query by both (the champion may be None); its held-out set and its group there."""

    challenger: np.ndarray
    champion: np.ndarray | None
    protocols: np.ndarray
    groups: np.ndarray


def ask_both(corpus: Path, scores: Path, champion: Path | None) -> Answers:
    """Answers to a Corpus' held-out titles: the challenger's are in its Scores, the champion's are computed.

    Raises:
        NotComparable: The champion cannot embed these titles.
    """
    queries = pq.read_table(scores / "queries.parquet", filters=[("form", "==", FORM)])
    own = query_quality(queries["correct"].to_numpy(), queries["precision_at_k"].to_numpy())
    rows = queries["title_id"].to_numpy()
    theirs = champion and _champions_quality(corpus, champion, rows, votes_of(scores))
    return Answers(own, theirs, queries["protocol"].to_numpy().astype(str), queries["group"].to_numpy())


def votes_of(scores: Path) -> int:
    """How many neighbours voted on each title (ten in scores of an older version)."""
    return int(_details(scores).get("k", 10))


def _details(artifact: Path) -> dict[str, Any]:
    return json.loads((artifact / "artifact.json").read_text(encoding="utf-8"))["details"]


def lineage(salt: str, sources: Sequence[str]) -> str:
    """Name of the lineage of scores: those of another salt or other feeds cannot be compared over time."""
    return hashlib.sha256("\n".join([salt, *sorted(set(sources))]).encode()).hexdigest()[:16]


def query_quality(correct: np.ndarray, precision_at_k: np.ndarray) -> Float[np.ndarray, " queries"]:
    """Mean of correctness and precision at k of each query."""
    return (correct.astype(np.float64) + precision_at_k) / 2


def _champions_quality(corpus: Path, champion: Path, rows: np.ndarray, k: int) -> np.ndarray:
    read = open_corpus(corpus)
    titles = Titles.of(read)
    raw_titles = pq.read_table(corpus / "titles.parquet", columns=["raw_title"])["raw_title"]
    try:
        encoder, identity = TitleEncoder.open(champion), _details(corpus).get("sentences", {}).get("identity")
        reads_dense = encoder.meaning is not None and encoder.meaning.encoder_info["identity"] == identity
        vectors = np.zeros((len(read), encoder.width), dtype=np.float32)
        judged_by = np.union1d(rows, titles.labelled("train"))
        for some in (judged_by[own] for own in row_blocks(len(judged_by))):
            dense = encoder.bag.dense(read.sentences[some], read.descriptions[some]) if reads_dense else None
            vectors[some] = encoder.embed(raw_titles.take(some).to_pylist(), dense)
    except (OSError, KeyError, TypeError, ValueError) as error:
        what = f"the champion's model in {champion} cannot be read by this version"
        raise NotComparable(f"{what} ({type(error).__name__}: {error})") from error
    judged = judge_knn(titles, vectors, rows, titles.labelled("train"), k)
    precision = np.zeros(len(rows)) if judged.precision_at_k is None else judged.precision_at_k
    return query_quality(judged.correct, precision)


def decide(
    answers: Answers,
    best_of_last: Sequence[float],
    rng: np.random.Generator,
    resamples: int = 1000,
    *,
    same_model: bool = False,
    incomparable: str = "",
    first: bool = True,
) -> Decision:
    """Decides on the challenger; ValueError where lengths of the answers differ, or a quality is NaN.

    Args:
        answers: Of both to the same queries.
        best_of_last: Qualities of the models promoted before, oldest first; the last 30 count.
        rng, resamples: Of the bootstrap.
        same_model: Challenger and champion are the same model: there is nothing to decide.
        incomparable: Why they cannot be compared; empty where they can, or where there is no champion yet.
        first: No model was promoted before.
    """
    challenger, champion, protocols, groups = answers
    for values in (challenger, *(() if champion is None else (champion,))):
        if not values.shape == groups.shape == protocols.shape:
            shapes = f"{values.shape}, {protocols.shape} and {groups.shape}"
            raise ValueError(f"qualities, protocols and groups must be per query, got {shapes}")
        if missing := int(np.isnan(values).sum()):
            what = f"{missing} of {len(values)} queries have no quality"
            raise ValueError(f"{what}; judge both models on the same queries first")
    quality = float(challenger.mean()) if len(challenger) else None

    def answer(promote: bool, reason: str, **compared) -> Decision:
        return Decision(promote=promote, reason=reason, quality=quality, **compared)

    judged = f"quality {quality:.3f} on {len(challenger)} titles" if quality is not None else NO_TITLES
    if same_model:
        return answer(False, "same model: challenger and champion are one, nothing to decide")
    if incomparable and first:
        return answer(True, f"the first model; {judged}; not compared: {incomparable}")
    if incomparable:
        what = f"not comparable with the champion, which stays: {incomparable}"
        return answer(False, f"{what}; {judged}; {ANYWAY}")
    if champion is None:
        return answer(True, f"there is no champion yet; {judged}")
    numbered = number_groups(protocols, groups)
    group_count = count_groups(numbered)
    if quality is None or group_count < 2:
        what = f"held-out titles of {group_count} shows are too few to compare the models by"
        return answer(False, f"{what}: the champion stays")
    counts = draw_groups(group_count, resamples, rng)
    difference = float((challenger - champion).mean())
    low, high = percentiles(resample_mean(challenger - champion, numbered, counts))
    own_low, own_high = percentiles(resample_mean(challenger, numbered, counts))
    remembered = list(best_of_last)[-REMEMBERED:]
    best = max(remembered, default=0.0)
    promote = False
    if high < 0:
        reason = "worse than the champion"
    elif own_high < best:
        what = f"below the best of the last {len(remembered)} promoted ({best:.3f})"
        reason = f"{what} beyond the interval ({own_low:.3f} to {own_high:.3f})"
    else:
        promote, what = True, "better than" if low > 0 else "not shown to be worse than"
        reason = f"{what} the champion"
    beside = f"quality {quality:.3f} against the champion's {float(champion.mean()):.3f}"
    interval = f"{difference:+.3f} (95 %: {low:+.3f} to {high:+.3f})"
    compared = f"{beside} on {len(challenger)} titles: {interval}"
    return answer(promote, f"{reason}: {compared}", difference=difference, interval=(low, high))
