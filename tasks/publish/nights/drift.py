"""How far a night's model is from that of the night before: vocabulary, categories, titles, neighbours.

Distances of distributions are Jensen–Shannon divergences in bits: 0 where they are equal, 1 where they share
nothing (Lin, *Divergence measures based on the Shannon entropy*, 1991, equation 4.1 with equal weights).
Neighbours are compared among titles of both nights, so that what is new in the guide displaces none of them.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.formats.corpus import OpenCorpus
from storage.formats.model import open_similarity
from storage.formats.vocabulary import NEXT_PERIOD, UNSEEN_SHOW, UNSEEN_TITLE
from storage.shapes import Float32
from tasks.neighbours.similarity import top_neighbours

NEAREST = 10
ASKED, AMONG = 2_000, 20_000  # titles whose neighbours are compared, and titles that may be neighbours
Counts = Mapping[str, int]


def oov_share(corpus: OpenCorpus) -> float:
    """Share of held-out titles with a word that no training title has; 0 without any."""
    held = np.isin(corpus.split, (UNSEEN_TITLE, UNSEEN_SHOW, NEXT_PERIOD))
    return float(corpus.oov[held].mean()) if held.any() else 0.0


def measure_drift(before: Path, now: Path) -> dict[str, float]:
    """Name to value, of two Model folders; an empty one where they have no titles in common."""
    words, titles = (
        [_words(folder) for folder in (before, now)],
        [_titles(folder) for folder in (before, now)],
    )
    found = {
        "vocabulary_distance": divergence(*words),
        "new_words": lacking(words[1], words[0]),
        "gone_words": lacking(words[0], words[1]),
        "category_distance": divergence(*map(_categories, titles)),
    }
    rows = pc.index_in(titles[1]["raw_title"], value_set=titles[0]["raw_title"])  # pyright: ignore[reportAttributeAccessIssue]
    then = rows.combine_chunks().fill_null(-1).to_numpy()
    common = np.flatnonzero(then >= 0)
    found["new_titles"] = 1 - len(common) / max(1, len(then))
    found["gone_titles"] = 1 - len(common) / max(1, len(titles[0]))
    common = common[np.linspace(0, len(common) - 1, min(AMONG, len(common))).astype(int)]
    vectors = [open_similarity(folder) for folder in (before, now)]
    if len(common) > NEAREST:
        same = before == now  # of an unchanged model every neighbour stayed
        found["neighbours_stayed"] = 1.0 if same else stayed(vectors[0][then[common]], vectors[1][common])
    return found


def divergence(one: Counts, other: Counts) -> float:
    """Jensen–Shannon divergence of two counts, in bits; 0 where one is empty."""
    names = sorted({*one, *other})
    shares = np.array([[counts.get(name, 0) for name in names] for counts in (one, other)], dtype=float)
    totals = shares.sum(axis=1, keepdims=True)
    if not names or not totals.all():
        return 0.0
    shares /= totals
    mean = shares.mean(axis=0)
    ratio = np.divide(shares, mean, out=np.ones_like(shares), where=shares > 0)
    return max(0.0, float((shares * np.log2(ratio)).sum() / 2))


def lacking(counts: Counts, known: Counts) -> float:
    """Share of the occurrences in ``counts`` whose name is not in ``known``."""
    return sum(count for name, count in counts.items() if name not in known) / max(1, sum(counts.values()))


def stayed(before: Float32[np.ndarray, "titles dim_before"], now: Float32[np.ndarray, "titles dim"]) -> float:
    """Mean share of the ten nearest titles before that are among the ten nearest now; rows are the same
    titles. At most 2,000 of them are asked for theirs.
    """
    asked = np.linspace(0, len(now) - 1, min(ASKED, len(now))).astype(int)
    old, new = (_nearest(vectors, asked) for vectors in (before, now))
    shares = [np.isin(a[a >= 0], b).mean() for a, b in zip(old, new, strict=True) if (a >= 0).any()]
    return float(np.mean(shares)) if shares else 0.0


def _nearest(vectors: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Ids of the nearest rows, without the row itself: int64, shape (asked, 10), -1 where there are fewer."""
    whole = np.ascontiguousarray(vectors, dtype=np.float32)
    ids, _ = top_neighbours(whole[asked], whole, NEAREST + 1)
    others = np.argsort(ids == asked[:, None], axis=1, kind="stable")[:, :NEAREST]
    return np.take_along_axis(ids, others, axis=1)


def _words(model: Path) -> Counter[str]:
    table = pq.read_table(model / "tokens.parquet", columns=["kind", "token", "term_frequency"])
    words = table.filter(pc.field("kind") == "word")
    return Counter(dict(zip(words["token"].to_pylist(), words["term_frequency"].to_pylist(), strict=True)))


def _titles(model: Path) -> pa.Table:
    return pq.read_table(model / "titles.parquet", columns=["raw_title", "labels"])


def _categories(titles: pa.Table) -> Counter[str]:
    return Counter(label for labels in titles["labels"].to_pylist() for label in labels)
