"""Strategies that draw a positive for each anchor of the neighbourhood objective.

A positive is a title to which the anchor should be close. Depending on the strategy, it has the same set of
categories as the anchor (Tags), has a category and the topic in common with the anchor (Topics), or is one of
the nearest titles with a category of the anchor (Nearest). If there is no such title, the anchor is its own
positive, and dropout removes different tokens from the two copies.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq

from storage.arrays import Ragged, offsets_of, row_blocks
from storage.formats.corpus import OpenCorpus
from storage.lazy import Tensor, torch
from storage.shapes import Float32, Int32, Int64
from tasks.form import configurable, setting
from tasks.neighbours.similarity import top_neighbours
from tasks.text.titles import FUNCTION_WORDS
from tasks.text.words import WORD

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]  # draws a positive for each anchor
# Topics ignore words that occur in more than 2 % of the titles and in more than 20 titles.
MAX_WORD_SHARE, MAX_WORD_TITLES = 0.02, 20
SHOWN_WORDS, SHOWN_TITLES = 10, 5  # numbers of words and titles of a topic in the details of a Checkpoint


@configurable
class BasePositives:
    """Base class of the strategies that draw positives. Subclasses implement ``draw``."""

    name: str

    def buffers(self, corpus: OpenCorpus) -> dict[str, Tensor]:
        """Returns the initial buffers of the strategy, by name. Buffers are stored in checkpoints."""
        return {}

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """Returns a function that draws the id of a positive for each anchor, int64 (anchors,)."""
        raise NotImplementedError

    def refresh_(
        self, buffers: dict[str, Tensor], title_ids: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Updates the buffers in place, with the same arguments as BaseObjective.refresh_."""

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns a summary of the buffers as JSON; ``folder`` is the folder of the Corpus."""
        return {}


@configurable
class Tags(BasePositives):
    """Strategy: the positive is a title with the same set of categories as the anchor."""

    name: Literal["tags"] = "tags"

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """Returns a function that draws a title with the same categories for each anchor."""
        set_numbers: dict[bytes, int] = {}  # number of each distinct set of categories
        group_of_title = np.empty(len(corpus), dtype=np.int32)
        for block in row_blocks(len(corpus)):
            labels = corpus.labels.between(block.start, block.stop).multi_hot(len(corpus.label_names))
            label_sets, set_of_title = np.unique(np.packbits(labels, axis=1), axis=0, return_inverse=True)
            group_ids = [set_numbers.setdefault(bits.tobytes(), len(set_numbers)) for bits in label_sets]
            group_of_title[block] = np.array(group_ids, dtype=np.int32)[set_of_title.reshape(-1)]
        groups = Ragged(np.arange(len(corpus) + 1), group_of_title)
        return lambda anchors, rng: draw_companion(groups, anchors, rng)


@configurable
class Topics(BasePositives):
    """Strategy: the positive is a title that shares a category and the topic with the anchor.

    Topics come from a non-negative matrix factorisation X ≈ W H, where X contains the TF-IDF values of the
    words in training titles. The topic of a title is the largest entry in its row of W; a title whose row is
    zero has no topic. The words of a topic have the largest entries in its row of H. X omits function words,
    words of only one title, and very frequent words. scikit-learn computes W and H when training starts.

    References:
        Lee, Seung. Learning the parts of objects by non-negative matrix factorization. Nature 401, 1999.
        https://doi.org/10.1038/44565
    """

    name: Literal["topics"] = "topics"
    topics: int = setting(50, "Number of topics into which all training titles are divided", ge=2, le=1000)

    def buffers(self, corpus: OpenCorpus) -> dict[str, Tensor]:
        """Returns the topic of each title (-1: none), and the top words and titles of each topic.

        Raises:
            ValueError: scikit-learn is not installed.
        """
        try:
            from scipy.sparse import csr_matrix
            from sklearn.decomposition import NMF
            from sklearn.exceptions import ConvergenceWarning
            from sklearn.feature_extraction.text import TfidfTransformer
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            raise ValueError(
                "train.objective.positives is topics, which needs scikit-learn, but it is not installed; "
                "install it, or choose tags or nearest"
            ) from error
        title_ids = corpus.training
        max_titles = max(MAX_WORD_TITLES, int(MAX_WORD_SHARE * len(title_ids)))
        tokens = corpus.tokens.take(title_ids)
        title_counts = np.bincount(tokens.values, minlength=len(corpus.kinds))
        has_medium_frequency = (title_counts > 1) & (title_counts <= max_titles)
        vocabulary = np.flatnonzero((np.asarray(corpus.kinds) == WORD) & has_medium_frequency)
        names = pq.read_table(corpus.folder / "token_names.parquet", columns=["token"])["token"]
        words = names.take(vocabulary).to_pylist()
        vocabulary = vocabulary[np.array([word not in FUNCTION_WORDS for word in words], dtype=bool)]
        if not len(vocabulary):  # no word occurs twice
            no_topics = torch.zeros((0, 0), dtype=torch.int32)
            topics = torch.full((len(corpus),), -1, dtype=torch.int32)
            return {"topics": topics, "topic_words": no_topics, "topic_titles": no_topics.clone()}
        matrix_arrays = np.ones(len(tokens.values)), tokens.values, tokens.offsets
        word_counts = csr_matrix(matrix_arrays, (len(title_ids), len(corpus.kinds)))[:, vocabulary]
        num_topics = max(1, min(self.topics, *word_counts.shape))
        model = NMF(num_topics, init="nndsvd", random_state=0)  # pyright: ignore[reportArgumentType]
        with warnings.catch_warnings(), threadpool_limits(1):  # more threads are slower and not reproducible
            warnings.simplefilter("ignore", ConvergenceWarning)  # the argmax does not need full convergence
            shares = model.fit_transform(TfidfTransformer().fit_transform(word_counts))  # (titles, topics)
        topics = np.full(len(corpus), -1, dtype=np.int32)
        topics[title_ids] = np.where(shares.any(axis=1), shares.argmax(axis=1), -1)
        arrays = {
            "topics": topics,
            "topic_words": _take(vocabulary, _top_columns(model.components_, SHOWN_WORDS)),
            "topic_titles": _take(title_ids, _top_columns(shares.T, SHOWN_TITLES)),
        }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """Returns a function that draws a title that shares the topic and a category with the anchor."""
        topics, entry_titles = buffers["topics"].cpu().numpy().astype(np.int64), corpus.labels.row_ids
        entry_topics = topics.take(entry_titles)
        label_topics = corpus.labels.values.astype(np.int64) * (topics.max(initial=0) + 1) + entry_topics
        # A title without a topic is alone in its groups.
        group_ids = np.where(entry_topics < 0, -1 - entry_titles, label_topics)
        groups = Ragged(np.asarray(corpus.labels.offsets), group_ids)
        return lambda anchors, rng: draw_companion(groups, anchors, rng)

    def details(self, folder: Path, buffers: dict[str, Tensor]) -> dict[str, Any]:
        """Returns {"topics": [...]} with a dictionary for each topic, by descending number of titles."""
        words = pq.read_table(folder / "token_names.parquet", columns=["token"])["token"].to_pylist()
        titles = pq.read_table(folder / "titles.parquet", columns=["raw_title"])["raw_title"].to_pylist()
        topics, topic_words, topic_titles = (
            buffers[name].cpu().numpy() for name in ("topics", "topic_words", "topic_titles")
        )
        sizes = np.bincount(topics[topics >= 0], minlength=len(topic_words))
        details = []
        for topic in np.argsort(-sizes, kind="stable").tolist():
            examples = {
                name: [names[row] for row in ids[topic] if row >= 0]
                for name, names, ids in (("words", words, topic_words), ("examples", titles, topic_titles))
            }
            details.append({"topic": topic, "titles": int(sizes[topic]), **examples})
        return {"topics": details}


@configurable
class Nearest(BasePositives):
    """Strategy: the positive is one of the nearest titles of the anchor within one of its categories.

    Neighbours are searched at the start of each epoch, by the current vectors with context tokens. In the
    first search, the embedding rows are random, but titles with common words are already close.
    """

    name: Literal["nearest"] = "nearest"
    neighbours: int = setting(50, "Number of nearest titles from which a positive is drawn", ge=1, le=1000)

    def buffers(self, corpus: OpenCorpus) -> dict[str, Tensor]:
        """Returns a table of nearest titles, int32 (titles, neighbours), which ``refresh_`` fills."""
        return {"neighbours": torch.full((len(corpus), self.neighbours), -1, dtype=torch.int32)}

    def refresh_(
        self, buffers: dict[str, Tensor], title_ids: np.ndarray, labels: Ragged, vectors: Callable[[], Tensor]
    ) -> None:
        """Searches the nearest titles of each training title with the current vectors."""
        positions = nearest_of_class(vectors().numpy(), labels.take(title_ids), self.neighbours)
        neighbours = np.full(tuple(buffers["neighbours"].shape), -1, dtype=np.int32)
        neighbours[title_ids] = _take(title_ids, positions)
        buffers["neighbours"].copy_(torch.from_numpy(neighbours))

    def draw(self, corpus: OpenCorpus, buffers: dict[str, Tensor]) -> Draw:
        """Returns a function that draws one of the current neighbours of each anchor."""

        def draw(anchors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            neighbours = buffers["neighbours"].cpu().numpy()[anchors]
            columns = (rng.random(len(anchors)) * (neighbours >= 0).sum(axis=1)).astype(np.int64)
            positives = neighbours[np.arange(len(anchors)), columns]
            return np.where(positives >= 0, positives, anchors)

        return draw


Positives = Tags | Topics | Nearest  # strategies that draw the positive of an anchor


def draw_companion(
    groups: Ragged, title_ids: np.ndarray, rng: np.random.Generator
) -> Int64[np.ndarray, " any"]:
    """Draws another title from one of the groups of each title.

    First a group of the title is drawn, then another title of this group, both uniformly. If the group has no
    other title, the companion is the title itself.

    Args:
        groups: Ids of the groups (at least one) of each title of the corpus.
        title_ids: Ids of the titles, which are also the possible companions.
        rng: Random generator.

    Returns:
        Id of the companion of each title.
    """
    memberships = groups.take(title_ids)
    order = memberships.values.argsort(kind="stable")  # entries sorted by group
    entry_ranks = np.empty_like(order)
    entry_ranks[order] = np.arange(len(order))
    group_numbers, sizes = np.unique(memberships.values, return_inverse=True, return_counts=True)[1:]
    drawn_memberships = (rng.random(len(title_ids)) * memberships.lengths).astype(np.int64)
    drawn_entries = memberships.offsets[:-1] + drawn_memberships
    drawn_groups, drawn_ranks = group_numbers[drawn_entries], entry_ranks[drawn_entries]
    group_sizes, group_starts = sizes[drawn_groups], offsets_of(sizes)[drawn_groups]
    shifts = 1 + (rng.random(len(title_ids)) * (group_sizes - 1)).astype(np.int64)
    companion_ranks = group_starts + (drawn_ranks - group_starts + shifts) % group_sizes
    return title_ids[memberships.row_ids[order[companion_ranks]]]


def nearest_of_class(
    vectors: Float32[np.ndarray, "titles dim"], labels: Ragged, k: int
) -> Int32[np.ndarray, "titles neighbours"]:
    """Returns the k nearest titles of each title among those with a category in common, nearest first.

    Missing neighbours are -1. A neighbour that has two categories in common with a title may occur twice.
    """
    neighbours = np.full((len(vectors), k), -1, dtype=np.int32)
    cosines = np.full((len(vectors), k), -np.inf, dtype=np.float32)
    titles_by_label = labels.row_ids[labels.values.argsort(kind="stable")]
    for members in np.split(titles_by_label, np.cumsum(np.bincount(labels.values))[:-1]):
        member_ids, member_cosines = top_neighbours(vectors[members], vectors[members], k, exclude_self=True)
        for block in row_blocks(len(members)):
            titles, is_missing = members[block], member_ids[block] < 0
            new_neighbours = np.where(is_missing, -1, members[member_ids[block]])
            new_cosines = np.where(is_missing, np.float32(-np.inf), member_cosines[block])
            all_neighbours = np.hstack([neighbours[titles], new_neighbours])
            all_cosines = np.hstack([cosines[titles], new_cosines])
            order = np.argsort(-all_cosines, axis=1, kind="stable")[:, :k]
            neighbours[titles] = np.take_along_axis(all_neighbours, order, 1)
            cosines[titles] = np.take_along_axis(all_cosines, order, 1)
    return neighbours


def _top_columns(values: np.ndarray, k: int) -> np.ndarray:
    """Returns the columns of the k largest values of each row, or -1 for values that are not positive."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(values, order, 1) > 0, order, -1)


def _take(values: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Returns values[positions] as int32, and -1 where the position is -1."""
    return np.where(positions >= 0, values[positions], -1).astype(np.int32)
