"""What a cluster is called: its most telling words, its most central titles, its commonest label.

A word tells when it stands in many of the cluster's titles and in few other clusters. The score of word t in cluster c is

    share(t, c) * log(share(t, c) / share(t)) * log((1 + clusters) / spread(t))^2

share is the part of titles that hold the word; spread, over how many clusters the word is strewn (the exponential of
the entropy of its titles over the clusters), so that a stray title does not make a telling word common. The last factor
is an inverse frequency over clusters: articles and prepositions stand in most clusters of their language and score
next to nothing; words strewn over more than a twelfth of the clusters are left out, and a word that people write small
in titles counts a third. So no list of stop words is needed.

In a cluster that is a genre rather than a topic no word stands in many titles; its name then begins with its label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WORDS_IN_NAME = 3
TOKENS_KEPT = 8
SEPARATOR = " · "
STREWN = 12  # a word is telling if it is strewn over no more than one in so many clusters (or over three)
TOPIC_SHARE = 0.15  # below this share of its best word a cluster is a genre, if half of its titles have one label
LEAST_SHARE = 0.03  # of titles, for a word in a name
FAINT = 0.1  # of the best word's score: below it a word tells nothing beside that one
SMALL = 1 / 3  # what a word counts that is mostly written with a small letter: with, and, de


@dataclass(frozen=True, kw_only=True)
class ClusterName:
    """One cluster, for people.

    Attributes:
        id: Number of the cluster in the labels.
        name: Two or three telling words, or the most central title where no word tells.
        size: Titles in it.
        tokens: Telling words as people write them, most telling first.
        titles: Most central titles, most central first.
        label: Commonest label of its titles, None when none has one.
        label_share: Part of its labelled titles with that label.
    """

    id: int
    name: str
    size: int
    tokens: list[str]
    titles: list[str]
    label: str | None
    label_share: float


def name_clusters(
    titles: Sequence[str], words: Sequence[Sequence[str]], labels: Sequence[Sequence[str]], vectors: np.ndarray, clusters: np.ndarray, *, central: int = 5
) -> list[ClusterName]:
    """Names of all clusters, in the order of their ids; no two alike.

    Args:
        titles: Display titles.
        words: Words of each title, as written.
        labels: Categories of each title, may be empty.
        vectors: float32, shape (titles, dim), unit norm or zero.
        clusters: Integers, shape (titles,), from 0 on without gaps; -1 is noise.
        central: Titles to show of each cluster.
    """
    count = int(clusters.max(initial=-1)) + 1
    members = [np.flatnonzero(clusters == number).tolist() for number in range(count)]
    written = _written_forms(words)
    telling = _telling_words(words, written, members, len(titles))
    found: list[ClusterName] = []
    taken: set[str] = set()
    for number, own in enumerate(members):
        tokens = [written[word] for word in telling[number]]
        nearest = [titles[row] for row in _most_central(vectors, own)[:central]]
        votes = Counter(label for row in own for label in set(labels[row]))
        label, times = min(votes.items(), key=lambda vote: (-vote[1], vote[0])) if votes else (None, 0)
        label_share = times / max(sum(1 for row in own if labels[row]), 1)
        in_name = [written[word] for word, share in telling[number].items() if share >= LEAST_SHARE]
        genre = label if label_share >= 0.5 and next(iter(telling[number].values()), 0) < TOPIC_SHARE else None
        name = _unused(_parts(in_name, genre, nearest[0]), [*tokens, nearest[0]], taken)
        taken.add(name)
        found.append(ClusterName(id=number, name=name, size=len(own), tokens=tokens, titles=nearest, label=label, label_share=label_share))
    return found


def _telling_words(words: Sequence[Sequence[str]], written: dict[str, str], members: list[list[int]], titles: int) -> list[dict[str, float]]:
    """Folded words of each cluster with their share of its titles, most telling first, none a mere variant of one before it."""
    of_title = [{word.casefold() for word in own} for own in words]
    everywhere = Counter(word for own in of_title for word in own)
    inside = [Counter(word for row in own for word in of_title[row]) for own in members]
    spread: dict[str, float] = {}
    for counts in inside:
        for word, times in counts.items():
            part = times / everywhere[word]
            spread[word] = spread.get(word, 0.0) - part * np.log(part)
    most = np.log(max(3.0, len(members) / STREWN)) + 1e-9
    chosen: list[dict[str, float]] = []
    for own, counts in zip(members, inside, strict=True):
        least = 2 if len(own) > 2 else 1
        scores = {}
        for word, times in counts.items():
            share = times / len(own)
            lift = share * titles / everywhere[word]
            if times >= least and (lift > 1 or len(members) == 1) and spread[word] <= most and len(word) > 1 and any(letter.isalpha() for letter in word):
                scores[word] = share * np.log(max(lift, 1.01)) * (np.log(1 + len(members)) - spread[word]) ** 2 * (SMALL if written[word].islower() else 1)
        ranked: dict[str, float] = {}
        for word in sorted(scores, key=lambda word: (-round(scores[word], 9), word)):
            if scores[word] >= FAINT * max(scores.values()) and not any(_variants(word, other) for other in ranked):
                ranked[word] = counts[word] / len(own)
            if len(ranked) == TOKENS_KEPT:
                break
        chosen.append(ranked)
    return chosen


def _variants(one: str, other: str) -> bool:
    """Whether one word is little more than the other with an ending: match, matches."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 3


def _written_forms(words: Sequence[Sequence[str]]) -> dict[str, str]:
    """Folded word to the form that people write most often; capitals throughout only where hardly anyone writes otherwise."""
    forms: dict[str, Counter[str]] = {}
    for own in words:
        for word in own:
            forms.setdefault(word.casefold(), Counter())[word] += 1
    chosen = {}
    for word, counts in forms.items():
        quiet = {form: times for form, times in counts.items() if not form.isupper()}
        among = quiet if 5 * sum(quiet.values()) >= counts.total() else counts
        chosen[word] = min(among, key=lambda form: (-among[form], form))
    return chosen


def _most_central(vectors: np.ndarray, rows: list[int]) -> list[int]:
    """The rows by falling cosine with their mean; equal ones by number."""
    cosines = np.round(vectors[rows] @ vectors[rows].mean(axis=0), 6)
    return [rows[place] for place in np.argsort(-cosines, kind="stable").tolist()]


def _parts(words: list[str], genre: str | None, central: str) -> list[str]:
    """What a name is made of: two or three words; a genre before its words; the most central title where nothing tells."""
    if genre is not None:
        return [genre[:1].upper() + genre[1:], *(word for word in words[: WORDS_IN_NAME - 1] if word.casefold() != genre.casefold())]
    return words[:WORDS_IN_NAME] or [central]


def _unused(parts: list[str], further: list[str], taken: set[str]) -> str:
    """The parts joined; where a cluster before is called so, with one further word, or with a number."""
    name = SEPARATOR.join(parts)
    if name not in taken:
        return name
    for word in further:
        if word not in parts and (longer := f"{name}{SEPARATOR}{word}") not in taken:
            return longer
    return next(numbered for number in range(2, len(taken) + 3) if (numbered := f"{name} ({number})") not in taken)
