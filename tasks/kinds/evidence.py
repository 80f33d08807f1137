"""Derives labels for the classifier of kinds (film, series, news …) from the categories in guides.

A title has a label for each kind:

- 1 if most airings with categories have a category that states the kind.
- 0 if the categories state only other kinds.
- -1 (unknown) if the categories state no kind, because many guides mark only some of their films, or if they
  state only that the title is for children, because this says nothing about the other kinds. The label for
  the kind children is unknown for animation that is not marked as children's.

The label for the kind film is also 0 if the title has a category that never occurs together with films in its
feed. For example, a feed has the categories "Movie" and "News and Documentaries". No title has both, so
titles with the second category are not films.

Training uses fewer labels (``GuideEvidence.training_labels``), because many guides state only one of several
kinds. For example, a programme of a news channel that is marked only as a talk show may also be news.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from storage.catalogue.airing_statistics import AiringStatistics, ensure_episode_columns
from storage.catalogue.connection import temporary_database
from storage.shapes import Bool, Float, Int
from tasks.kinds.kinds import KINDS, Kind, combine
from tasks.kinds.names import is_animation, kinds_of_categories

MIN_EXPECTED_FILMS = 5  # minimum number of films in a category if films were independent of categories
MAX_FILM_SHARE = 0.02  # maximum share of films among the titles of a category that excludes films
FILM_MINUTES = 70  # minimum duration in minutes of programmes that may be films
TOPICS: tuple[Kind, ...] = ("news", "sport", "children")  # kinds to which channels are devoted
# A channel is devoted to a kind if it has at least this share and number of titles of the kind. With a share
# of .3, local stations of the networks in the USA counted as news channels, and most predictions on them were
# wrong.
MIN_TOPIC_SHARE, MIN_TOPIC_TITLES = 0.5, 3
MAX_CATEGORIES = 10  # programmes with more categories are damaged, and have the categories of a whole day
MEMORY_BYTES = 100_000_000  # memory limit of DuckDB
_FILM, _SERIES, _CHILDREN = (KINDS.index(kind) for kind in ("film", "series", "children"))


@dataclass(frozen=True)
class Evidence:
    """Evidence in guides for the kinds of titles.

    Attributes:
        shares: Share of airings whose categories state the kind, among the airings with categories.
        numbered_shares: Share of airings that have an episode number.
        is_animation: Whether an airing of the title has a category for animation.
        has_non_film_category: Whether the title has a category that does not occur with films in its feed.
    """

    shares: Float[np.ndarray, "titles kinds"]
    numbered_shares: Float[np.ndarray, " titles"]
    is_animation: Bool[np.ndarray, " titles"]
    has_non_film_category: Bool[np.ndarray, " titles"]

    @property
    def stated(self) -> Bool[np.ndarray, "titles kinds"]:
        """Whether the categories of most airings of a title state the kind."""
        return self.shares > 0.5

    @property
    def is_numbered(self) -> Bool[np.ndarray, " titles"]:
        """Whether most airings of each title have an episode number."""
        return self.numbered_shares > 0.5

    def labels(self) -> Int[np.ndarray, "titles kinds"]:
        """Returns labels: 1 for a title of the kind, 0 for a title of other kinds, -1 if unknown."""
        stated, is_stated_once = self.stated, self.shares > 0
        without_children = stated.copy()
        without_children[:, _CHILDREN] = False  # a children's title may have any other kind as well
        is_example = without_children.any(axis=1) | self.is_numbered
        labels = np.where(stated, 1, np.where(is_example[:, None] & ~is_stated_once, 0, -1))
        labels[(labels[:, _FILM] < 0) & self.has_non_film_category & ~is_stated_once[:, _FILM], _FILM] = 0
        labels[self.is_animation & (labels[:, _CHILDREN] == 0), _CHILDREN] = -1
        # A title with episode numbers counts as a series without a prediction (decisions.py).
        labels[self.is_numbered & ~stated[:, _SERIES], _SERIES] = -1
        is_subject = np.isin(KINDS, ("news", "sport", "music"))  # "Movies, Sports" is a film about sport
        labels[np.ix_(stated[:, _FILM], is_subject)] = -1
        return labels.astype(np.int8)


def gather_evidence(structure: pa.Table, categories: pa.Table) -> Evidence:
    """Computes the evidence from the airings and categories of titles.

    Args:
        structure, categories: Results of ``AiringStatistics`` (storage/catalogue/airing_statistics.py).
    """
    title_count = len(structure)
    kind_airings, total_airings = np.zeros((title_count, len(KINDS))), np.zeros(title_count)
    has_animation = np.zeros(title_count, dtype=bool)
    for title, texts, is_numbered, airings in zip(*(column.to_pylist() for column in categories.columns)):
        total_airings[title] += airings
        has_animation[title] |= is_animation(texts)
        for kind in combine(kinds_of_categories(texts), is_numbered):
            kind_airings[title, KINDS.index(kind)] += airings
    numbered_shares = structure["numbered"].to_numpy() / structure["airings"].to_numpy()
    shares = kind_airings / np.maximum(total_airings, 1)[:, None]
    has_non_film_category = _has_non_film_category(structure, categories, shares[:, _FILM] > 0)
    return Evidence(shares, numbered_shares, has_animation, has_non_film_category)


def _has_non_film_category(
    structure: pa.Table, categories: pa.Table, is_film: Bool[np.ndarray, " titles"]
) -> Bool[np.ndarray, " titles"]:
    """Returns whether each title has a category that does not occur together with films in its feed.

    The feed must have so many films that MIN_EXPECTED_FILMS titles of the category would be films if films
    were independent of the category. A category whose programmes are as long as films is skipped, because
    guides that mark some films as "Film d'aventures" mark other films only as "Drame".

    Args:
        structure, categories: Results of ``AiringStatistics``.
        is_film: Whether a category of the title states the kind film.
    """
    sources = structure["source"].to_numpy(zero_copy_only=False)
    minutes = structure["minutes"].to_numpy()
    film_share = {source: is_film[sources == source].mean() for source in np.unique(sources)}
    titles_with: defaultdict[tuple[str, str], set[int]] = defaultdict(set)  # titles by feed and category
    for title, texts in zip(categories["title_id"].to_pylist(), categories["categories"].to_pylist()):
        for text in texts if len(texts) <= MAX_CATEGORIES else ():
            titles_with[sources[title], text].add(title)
    has_non_film_category = np.zeros(len(structure), dtype=bool)
    for (source, _), titles in titles_with.items():
        rows = np.fromiter(titles, np.int64)
        expected_films = film_share[source] * len(rows)
        if expected_films >= MIN_EXPECTED_FILMS and is_film[rows].mean() <= MAX_FILM_SHARE:
            has_non_film_category[rows] |= np.median(minutes[rows]) < FILM_MINUTES
    return has_non_film_category


@dataclass(frozen=True)
class GuideEvidence:
    """Data of a guide from which the kinds of its titles are determined."""

    structure: pa.Table  # statistics of the airings of each title (``AiringStatistics.by_title``)
    evidence: Evidence

    @property
    def channels(self) -> list[str]:
        """Main channel of each title."""
        return self.structure["channel"].to_pylist()

    @property
    def sources(self) -> list[str]:
        """Main feed of each title."""
        return self.structure["source"].to_pylist()

    def training_labels(self) -> Int[np.ndarray, "titles kinds"]:
        """Returns the labels of ``Evidence.labels``, with -1 for labels that are often wrong.

        On a channel that is devoted to news, sport or children (MIN_TOPIC_SHARE), titles that are marked only
        with other kinds may have the kind of the channel, too, unless they are films on a news or sport
        channel. A "series" that is as long as a film and has neither episode numbers nor sub-titles may be a
        film: streaming guides mark such films as series.
        """
        labels, shares = self.evidence.labels(), self.evidence.shares
        channel_ids = self.structure["channel"].combine_chunks().dictionary_encode().indices.to_numpy()
        for kind in TOPICS:
            kind_labels = labels[:, KINDS.index(kind)]
            positives, negatives = (np.bincount(channel_ids, kind_labels == label) for label in (1, 0))
            is_topic = positives >= np.maximum(MIN_TOPIC_TITLES, MIN_TOPIC_SHARE * (positives + negatives))
            is_unknown = is_topic[channel_ids] & ((kind == "children") | (shares[:, _FILM] == 0))
            kind_labels[is_unknown & (kind_labels == 0)] = -1
        minutes, sub_titled = (self.structure[name].to_numpy() for name in ("minutes", "sub_titled"))
        has_no_episodes = (sub_titled == 0) & (self.evidence.numbered_shares == 0)
        may_be_film = (minutes >= FILM_MINUTES) & has_no_episodes & (shares[:, _SERIES] > 0)
        labels[may_be_film & (labels[:, _FILM] == 0), _FILM] = -1
        return labels


def read_evidence(programmes: Path, variants: Path, work: Path) -> GuideEvidence:
    """Reads the categories and the statistics of airings of the titles of a guide.

    Args:
        programmes: programmes.parquet of a Guide, or of a guide to enrich (tasks/enrich/survey.py).
        variants: Parquet file with raw_title and title_id.
        work: Folder for temporary files.
    """
    file = ensure_episode_columns(programmes, work / "numbered.parquet")
    with temporary_database(work, MEMORY_BYTES) as connection:
        airings = AiringStatistics(connection, file, variants)
        structure = airings.by_title()
        return GuideEvidence(structure, gather_evidence(structure, airings.categories()))
