"""Where the positives of the neighbourhood objective come from: what counts as an anchor's own topic.

A strategy draws a positive for each anchor, a title that shares a category with it: one with the same tags,
of the same topic, or near it now. A title without company (no other has its set of tags, its class has one
title) is its own positive: dropout shows it twice with other tokens, and the negatives still train the words
that no other title has.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor

from storage.arrays import Ragged, offsets_of
from storage.formats.corpus import OpenCorpus
from storage.shapes import Float32, Int64
from tasks.form import configurable, setting
from tasks.neighbours.similarity import top_neighbours
from tasks.text.titles import FUNCTION_WORDS
from tasks.text.words import WORD

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]
COMMON, FEW = 0.02, 20  # words in more titles than this share (and than so many) make no topic: the, of, with
WORDS, EXAMPLES = 10, 5  # that are shown of a topic


@configurable
class BasePositives:
    """Base of the strategies; ``draw`` is what each has of its own."""

    name: str

    @property
    def refresh_steps(self) -> int:
        """See the objective's."""
        return 0

    def buffers(self, corpus: OpenCorpus) -> dict[str, Tensor]:
        """State kept in checkpoints, at the start."""
        return {}

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """A function of anchors, int64 (anchors,), and a generator: a positive of each, alike."""
        raise NotImplementedError

    def refresh_(
        self, buffers: dict[str, Tensor], rows: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """See the objective's."""

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """What people are shown of the state, as JSON; ``folder`` is the Corpus'."""
        return {}


@configurable
class Tags(BasePositives):
    """A title with the same whole set of categories."""

    name: Literal["tags"] = "tags"

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """See the base."""
        sets = np.packbits(corpus.labels.members(len(corpus.label_names)), axis=1)
        number = np.unique(sets, axis=0, return_inverse=True)[1].reshape(-1)
        groups = Ragged(np.arange(len(number) + 1), number)
        return lambda anchors, rng: draw_companion(groups, anchors, rng)


@configurable
class Topics(BasePositives):
    """A title of the same class and the same topic.

    Topics come from a non-negative factorisation X ≈ W H of the training titles' words, X weighted by TF-IDF:
    a title's topic is the argmax of its row of W (none, where that is zero), a topic's words are the greatest
    of its row of H. Words of one title, those of too many, and articles and the like are left out.
    scikit-learn computes it when training begins; a machine without it can train with tags or nearest. After
    Lee, Seung. Learning the parts of objects by non-negative matrix factorization. Nature 401, 1999.
    https://doi.org/10.1038/44565
    """

    name: Literal["topics"] = "topics"
    topics: int = setting(50, "Topics of all training titles together", ge=2, le=1000)

    def buffers(self, corpus: OpenCorpus) -> dict[str, Tensor]:
        """Of each title its topic, -1 for none; of each topic its words and the titles with most of it."""
        try:
            from scipy.sparse import csr_matrix
            from sklearn.decomposition import NMF
            from sklearn.exceptions import ConvergenceWarning
            from sklearn.feature_extraction.text import TfidfTransformer
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            why = "is topics, which needs scikit-learn, and that is not installed here"
            raise ValueError(f"objective.positives {why}; install it, or choose tags or nearest") from error
        rows, most = corpus.training, max(FEW, int(COMMON * len(corpus.training)))
        tokens = corpus.tokens.take(rows)
        frequency = np.bincount(tokens.values, minlength=len(corpus.kinds))
        vocabulary = np.flatnonzero(
            (np.asarray(corpus.kinds) == WORD) & (frequency > 1) & (frequency <= most)
        )
        names = pq.read_table(corpus.folder / "token_names.parquet", columns=["token"])["token"]
        words = names.take(vocabulary).to_pylist()
        vocabulary = vocabulary[np.array([word not in FUNCTION_WORDS for word in words], dtype=bool)]
        cells = np.ones(len(tokens.values)), tokens.values, tokens.offsets
        counts = csr_matrix(cells, (len(rows), len(corpus.kinds)))[:, vocabulary]
        wanted = max(1, min(self.topics, *counts.shape))
        model = NMF(wanted, init="nndsvd", random_state=0)  # pyright: ignore[reportArgumentType]
        with warnings.catch_warnings(), threadpool_limits(1):  # more threads are slower, and other bits
            warnings.simplefilter("ignore", ConvergenceWarning)  # an argmax needs no last digit
            shares = model.fit_transform(TfidfTransformer().fit_transform(counts))  # (rows, topics)
        topics = np.full(len(corpus), -1, dtype=np.int32)
        topics[rows] = np.where(shares.any(axis=1), shares.argmax(axis=1), -1)
        strongest = _greatest(model.components_, WORDS), _greatest(shares.T, EXAMPLES)
        named = {"topic_words": _named(vocabulary, strongest[0]), "topic_titles": _named(rows, strongest[1])}
        return {name: torch.from_numpy(array) for name, array in ({"topics": topics} | named).items()}

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """See the base; a title of several classes draws one of them each time."""
        topics, owners = buffers["topics"].cpu().numpy().astype(np.int64), corpus.labels.owners
        own = topics.take(owners)
        of_class = corpus.labels.values.astype(np.int64) * (topics.max(initial=0) + 1) + own
        groups = Ragged(np.asarray(corpus.labels.offsets), np.where(own < 0, -1 - owners, of_class))
        return lambda anchors, rng: draw_companion(groups, anchors, rng)

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """``topics``: a dictionary for each, largest first."""
        words = pq.read_table(folder / "token_names.parquet", columns=["token"])["token"].to_pylist()
        titles = pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"].to_pylist()
        topics, of_words, of_titles = (
            buffers[name].cpu().numpy() for name in ("topics", "topic_words", "topic_titles")
        )
        sizes = np.bincount(topics[topics >= 0], minlength=len(of_words))
        found = []
        for topic in np.argsort(-sizes, kind="stable").tolist():
            named = {
                name: [names[row] for row in own[topic] if row >= 0]
                for name, names, own in (("words", words, of_words), ("examples", titles, of_titles))
            }
            found.append({"topic": topic, "titles": int(sizes[topic]), **named})
        return {"topics": found}


@configurable
class Nearest(BasePositives):
    """One of the titles that are nearest to the anchor now, within a class of its own, by the learner's
    vectors of titles as they air.

    They are looked up at the start of each epoch, and every ``refresh`` steps within it: first by the rows'
    random start, by which titles are near that share words.
    """

    name: Literal["nearest"] = "nearest"
    neighbours: int = setting(50, "Nearest titles that a positive is drawn from", ge=1, le=1000)
    refresh: int = setting(
        0, "Steps of an epoch after which they are looked up again; 0: at its start alone", ge=0
    )

    @property
    def refresh_steps(self) -> int:
        """See the objective's."""
        return self.refresh

    def buffers(self, corpus: OpenCorpus) -> dict[str, Tensor]:
        """Nearest titles, int32 (titles, neighbours): best first, -1 behind the last."""
        return {"neighbours": torch.full((len(corpus), self.neighbours), -1, dtype=torch.int32)}

    def refresh_(
        self, buffers: dict[str, Tensor], rows: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """See the base."""
        near = nearest_of_class(vectors().numpy(), labels.take(rows), self.neighbours)
        table = np.full(tuple(buffers["neighbours"].shape), -1, dtype=np.int32)
        table[rows] = _named(rows, near)
        buffers["neighbours"].copy_(torch.from_numpy(table))

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """See the base; each call reads the table anew."""

        def draw(anchors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            near = buffers["neighbours"].cpu().numpy()[anchors]
            column = (rng.random(len(anchors)) * (near >= 0).sum(axis=1)).astype(np.int64)
            chosen = near[np.arange(len(anchors)), column]
            return np.where(chosen >= 0, chosen, anchors)

        return draw


Positives = Tags | Topics | Nearest


def draw_companion(groups: Ragged, rows: np.ndarray, rng: np.random.Generator) -> Int64[np.ndarray, " any"]:
    """For each of ``rows`` another one of them that shares one of its groups (a title has one or more), drawn
    evenly; the row itself where there is none.
    """
    own = groups.take(rows)
    order = own.values.argsort(kind="stable")  # entries, group by group
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    number, sizes = np.unique(own.values, return_inverse=True, return_counts=True)[1:]
    entry = own.offsets[:-1] + (rng.random(len(rows)) * own.lengths).astype(np.int64)
    size, start = sizes[number[entry]], offsets_of(sizes)[number[entry]]
    ahead = 1 + (rng.random(len(rows)) * (size - 1)).astype(np.int64)
    return rows[own.owners[order[start + (place[entry] - start + ahead) % size]]]


def nearest_of_class(
    vectors: Float32[np.ndarray, "titles dim"], labels: Ragged, k: int
) -> Int64[np.ndarray, "titles neighbours"]:
    """The k nearest of each title among those that share a class with it, best first, -1 behind the last; one
    that shares two classes may be there twice.
    """
    near, cosines = np.full((len(vectors), k), -1), np.full((len(vectors), k), -np.inf)
    by_label = labels.owners[labels.values.argsort(kind="stable")]
    for own in np.split(by_label, np.cumsum(np.bincount(labels.values))[:-1]):
        ids, values = top_neighbours(vectors[own], vectors[own], k, exclude_self=True)
        both = np.hstack([near[own], np.where(ids >= 0, own[ids], -1)])
        values = np.hstack([cosines[own], np.where(ids >= 0, values, -np.inf)])
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        near[own], cosines[own] = (np.take_along_axis(some, order, 1) for some in (both, values))
    return near


def _greatest(values: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k greatest values of each row, int64 (any, at most k); -1 for those not above zero."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(values, order, 1) > 0, order, -1)


def _named(names: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Names of places, int32; -1 stays."""
    return np.where(places >= 0, names[places], -1).astype(np.int32)
