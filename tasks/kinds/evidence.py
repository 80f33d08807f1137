"""Derives labels for the classifier of kinds (film, series, news …) from the categories in guides.

The label of a title for a kind is

- 1 if the categories of most of its airings (among those with categories) state the kind,
- 0 if the categories state only other kinds,
- -1, unknown, if they state no kind, because many guides mark only some of their films, or if they state only
  that the title is for children, because this says nothing about the other kinds. The label for the kind
  children is unknown for animation that is not marked as children's.

The label for the kind film is also 0 if the title has a category that never occurs together with films in its
feed. For example, in a feed with the categories Movie and "News and Documentaries", the latter are not films.

Training uses fewer labels (``Facts.training_labels``), because many guides state one of several kinds: a talk
show of a news channel may also be news, and a sitcom of a children's channel may also be for children.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from storage.catalogue.connection import temporary_database
from storage.catalogue.structure import TitleAirings, ensure_episode_columns
from storage.shapes import Bool, Float, Int
from tasks.kinds.kinds import KINDS, Kind, combine
from tasks.kinds.names import is_animation, kinds_of_categories

MIN_EXPECTED = 5  # minimum number of films that a category would have by chance
MAX_STATED = 0.02  # maximum share of titles of a category that state the kind film by mistake
FILM_MINUTES = 70  # minimum duration in minutes of programmes that may be films
TOPICS: tuple[Kind, ...] = ("news", "sport", "children")  # kinds to which channels are devoted
# Minimum share and number of titles of the kind on such a channel. With a share of .3, local stations of the
# networks in the USA counted as news channels, and most predictions on them were wrong.
TOPIC_SHARE, TOPIC_TITLES = 0.5, 3
MAX_CATEGORIES = 10  # maximum categories of a programme; damaged programmes have the categories of a day
MEMORY_BYTES = 100_000_000  # memory limit of DuckDB
_FILM, _SERIES, _CHILDREN, _OTHER = (KINDS.index(kind) for kind in ("film", "series", "children", "other"))


@dataclass(frozen=True)
class Evidence:
    """Evidence in guides for the kinds of titles.

    Attributes:
        shares: Share of airings whose categories state each kind, among the airings with categories.
        numbered: Share of the airings that have an episode number.
        animated: Whether an airing has a category for animation.
        not_film: Whether the title has a category that never occurs with films (``_find_never_films``).
    """

    shares: Float[np.ndarray, "titles kinds"]
    numbered: Float[np.ndarray, " titles"]
    animated: Bool[np.ndarray, " titles"]
    not_film: Bool[np.ndarray, " titles"]

    @property
    def stated(self) -> Bool[np.ndarray, "titles kinds"]:
        """Whether the categories of most airings state each kind."""
        return self.shares > 0.5

    @property
    def is_numbered(self) -> Bool[np.ndarray, " titles"]:
        """Whether most airings of each title have an episode number."""
        return self.numbered > 0.5

    def labels(self) -> Int[np.ndarray, "titles kinds"]:
        """Returns labels: 1 for a title of the kind, 0 for a title of other kinds, -1 if unknown."""
        stated, is_stated_once = self.stated, self.shares > 0
        exclusive = stated.copy()
        exclusive[:, _CHILDREN] = False  # may combine with every kind
        is_example = exclusive.any(axis=1) | self.is_numbered
        labels = np.where(stated, 1, np.where(is_example[:, None] & ~is_stated_once, 0, -1))
        labels[(labels[:, _FILM] < 0) & self.not_film & ~is_stated_once[:, _FILM], _FILM] = 0
        labels[self.animated & (labels[:, _CHILDREN] == 0), _CHILDREN] = -1
        labels[self.is_numbered & ~stated[:, _SERIES], _SERIES] = -1  # decided without a classifier
        is_subject = np.isin(KINDS, ("news", "sport", "music"))  # "Movies, Sports" is a film about sport
        labels[np.ix_(stated[:, _FILM], is_subject)] = -1
        return labels.astype(np.int8)


def gather_evidence(structure: pa.Table, categories: pa.Table) -> Evidence:
    """Computes the evidence from the airings and categories of titles.

    Args:
        structure, categories: Results of ``TitleAirings`` (storage/catalogue/structure.py).
    """
    titles = len(structure)
    counts, totals, animated = np.zeros((titles, len(KINDS))), np.zeros(titles), np.zeros(titles, dtype=bool)
    for title, texts, numbered, airings in zip(*(column.to_pylist() for column in categories.columns)):
        totals[title] += airings
        animated[title] |= is_animation(texts)
        for kind in combine(kinds_of_categories(texts), numbered):
            counts[title, KINDS.index(kind)] += airings
    numbered = structure["numbered"].to_numpy() / structure["airings"].to_numpy()
    shares = counts / np.maximum(totals, 1)[:, None]
    return Evidence(
        shares, numbered, animated, _find_never_films(structure, categories, shares[:, _FILM] > 0)
    )


def _find_never_films(
    structure: pa.Table, categories: pa.Table, is_film: Bool[np.ndarray, " titles"]
) -> Bool[np.ndarray, " titles"]:
    """Returns whether each title has a category that never occurs together with films in its feed.

    The feed must state films so often that, by chance, MIN_EXPECTED titles of the category would be films. A
    category whose programmes are as long as films is skipped, because guides that mark some films as "Film
    d'aventures" mark other films only as "Drame".
    """
    sources = structure["source"].to_numpy(zero_copy_only=False)
    minutes = structure["minutes"].to_numpy()
    share_of = {source: is_film[sources == source].mean() for source in np.unique(sources)}
    titles_with: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for title, texts in zip(categories["title_id"].to_pylist(), categories["categories"].to_pylist()):
        for text in texts if len(texts) <= MAX_CATEGORIES else ():
            titles_with[sources[title], text].add(title)
    is_never_film = np.zeros(len(structure), dtype=bool)
    for (source, _), titles in titles_with.items():
        rows = np.fromiter(titles, np.int64)
        if share_of[source] * len(rows) >= MIN_EXPECTED and is_film[rows].mean() <= MAX_STATED:
            is_never_film[rows] |= np.median(minutes[rows]) < FILM_MINUTES
    return is_never_film


@dataclass(frozen=True)
class Facts:
    """Data of a guide from which the kinds of its titles are determined."""

    structure: pa.Table  # times, durations and numbers of the airings of each title
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
        """Returns the labels of ``Evidence.labels`` without those that are often wrong.

        On a channel that is devoted to news, sport or children (TOPIC_SHARE), it is unknown whether the other
        titles have this kind; a film is not news or sport. A series that is as long as a film and has neither
        episode numbers nor sub-titles may be a film: streaming guides mark such films as series.
        """
        labels, shares = self.evidence.labels(), self.evidence.shares
        column = self.structure["channel"].combine_chunks().dictionary_encode().indices.to_numpy()
        for kind in TOPICS:
            of_kind = labels[:, KINDS.index(kind)]
            with_kind, without_kind = (np.bincount(column, of_kind == label) for label in (1, 0))
            is_topic = with_kind >= np.maximum(TOPIC_TITLES, TOPIC_SHARE * (with_kind + without_kind))
            is_unknown = is_topic[column] & ((kind == "children") | (shares[:, _FILM] == 0))
            of_kind[is_unknown & (of_kind == 0)] = -1
        minutes, sub_titled = (self.structure[name].to_numpy() for name in ("minutes", "sub_titled"))
        is_long = (minutes >= FILM_MINUTES) & (sub_titled == 0) & (self.evidence.numbered == 0)
        labels[is_long & (labels[:, _FILM] == 0) & (shares[:, _SERIES] > 0), _FILM] = -1
        return labels


def read_facts(programmes: Path, variants: Path, work: Path) -> Facts:
    """Reads the categories and the structure of airings of the titles of a guide.

    Args:
        programmes: programmes.parquet of a Guide, or of a guide to enrich (tasks/enrich/survey.py).
        variants: Parquet file with raw_title and title_id.
        work: Folder for temporary files.
    """
    file = ensure_episode_columns(programmes, work / "numbered.parquet")
    with temporary_database(work, MEMORY_BYTES) as connection:
        airings = TitleAirings(connection, file, variants)
        structure = airings.structure()
        return Facts(structure, gather_evidence(structure, airings.categories()))
