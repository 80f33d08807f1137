"""What a cluster is called: its category, its most telling words, or a title that stands for it.

The *category* of a cluster is the one that most of its titles carry; titles are counted, not airings, as the
map draws one point a title. Guides often give a broad category and a narrower one (sport, football): of those
on almost as many titles of the cluster as its commonest one (NARROWER), the rarest in the guide is taken. A
category that fewer than half of all the titles carry is a minority's; such a cluster has none. The name
begins with the category, and the map gives its colour to the titles that carry it, so the name says what is
seen.

A word tells when it stands in many of the cluster's titles and in few other clusters. The score of word t in
cluster c is

    share(t, c) * log(share(t, c) / share(t)) * log((1 + clusters) / spread(t))^2

share is the part of titles that hold the word; spread, over how many clusters the word is strewn (the
exponential of the entropy of its titles over the clusters), so that a stray title does not make a telling
word common. The last factor is an inverse frequency over clusters: articles and prepositions stand in most
clusters of their language and score next to nothing; words strewn over more than a twelfth of the clusters
are left out, and a word that people write small in titles counts a third. So no list of stop words is needed.

A telling word is joined with what mostly stands beside it (Grand Prix, Mary Berry's), and goes into the name
if the phrase covers a real share of the titles (LEAST_SHARE), half of which no phrase before it covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.cluster.phrases import WORD, Phrase, Words, find_phrases, most_written

WORDS_IN_NAME = 3
TOKENS_KEPT = 8
SEPARATOR = " · "
STREWN = 12  # a word is telling if it is strewn over no more than one in so many clusters (or over three)
MAJORITY = 0.5  # of all titles of a cluster, for its category
NARROWER = 0.8  # of the titles that carry the commonest category: a rarer one on so many is the cluster's
LEAST_SHARE = 0.1  # of titles, for a phrase in a name
FAINT = 0.1  # of the best word's score: below it a word tells nothing beside that one
SMALL = 1 / 3  # what a word counts that is mostly written with a small letter: with, and, de
EVERYWHERE = 4  # a word strewn over one in so many clusters (and over three) ends no phrase: the, of, with
SHORT = 3  # letters: a word no longer that is mostly written small tells nothing: vom, the


@dataclass(frozen=True, kw_only=True)
class ClusterName:
    """One cluster, for people.

    Attributes:
        id: Number of the cluster in the labels.
        name: Its category, telling words, or a title that stands for it: see above.
        size: Titles in it.
        tokens: Telling words and phrases as titles write them, most telling first.
        titles: Most central titles, most central first.
        label: Category that at least half of its titles carry, the rarest of nearly equal ones, or None.
        label_share: Part of its titles that carry it.
    """

    id: int
    name: str
    size: int
    tokens: list[str]
    titles: list[str]
    label: str | None
    label_share: float


def name_clusters(
    titles: Sequence[str],
    labels: Sequence[Sequence[str]],
    vectors: np.ndarray,
    clusters: np.ndarray,
    *,
    central: int = 5,
) -> list[ClusterName]:
    """Names of all clusters, in the order of their ids; no two alike.

    Args:
        titles: Display titles.
        labels: Categories of each title, may be empty.
        vectors: float32, shape (titles, dim), unit norm or zero.
        clusters: Integers, shape (titles,), from 0 on without gaps; -1 is noise.
        central: Titles to show of each cluster.
    """
    count = int(clusters.max(initial=-1)) + 1
    members = [np.flatnonzero(clusters == number).tolist() for number in range(count)]
    words = Words(titles)
    spread = _spread(words, members)
    small = _written_small(words)
    telling = _telling_words(words, members, spread, small)
    common = small | {word for word, over in spread.items() if over > np.log(max(3.0, count / EVERYWHERE))}
    carried = Counter(label for own in labels for label in set(own))
    found: list[ClusterName] = []
    taken: set[str] = set()
    for number, own in enumerate(members):
        label, share = _category(labels, own, carried)
        phrases = find_phrases(words, own, telling[number], common)
        nearest = [titles[row] for row in _most_central(vectors, own)[:central]]
        heading = [_heading(label, words, own)] if label else []
        name = _unused(heading + _telling(phrases, len(own), label), min(nearest, key=len), taken)
        taken.add(name)
        tokens = [phrase.text for phrase in phrases]
        found.append(
            ClusterName(
                id=number,
                name=name,
                size=len(own),
                tokens=tokens,
                titles=nearest,
                label=label,
                label_share=share,
            )
        )
    return found


def _category(
    labels: Sequence[Sequence[str]], rows: list[int], carried: Counter[str]
) -> tuple[str | None, float]:
    """The category of the titles and the part of them that carry it; None and 0 where most carry none."""
    votes = Counter(label for row in rows for label in set(labels[row]))
    most = max(votes.values(), default=0)
    candidates = [
        label for label, times in votes.items() if times >= max(NARROWER * most, MAJORITY * len(rows))
    ]
    if not candidates:
        return None, 0.0
    label = min(candidates, key=lambda label: (carried[label], label))
    return label, votes[label] / len(rows)


def _spread(words: Words, members: list[list[int]]) -> dict[str, float]:
    """Logarithm of over how many clusters each word is strewn."""
    everywhere = Counter(word for own in words.folded for word in set(own))
    spread: dict[str, float] = {}
    for own in members:
        for word, times in Counter(word for row in own for word in set(words.folded[row])).items():
            part = times / everywhere[word]
            spread[word] = spread.get(word, 0.0) - part * np.log(part)
    return spread


def _telling_words(
    words: Words, members: list[list[int]], spread: dict[str, float], small: set[str]
) -> list[list[str]]:
    """Folded words of each cluster, most telling first, none a mere variant of one before it."""
    of_title = [set(own) for own in words.folded]
    everywhere = Counter(word for own in of_title for word in own)
    most = np.log(max(3.0, len(members) / STREWN)) + 1e-9
    chosen: list[list[str]] = []
    for own in members:
        counts = Counter(word for row in own for word in of_title[row])
        least = 2 if len(own) > 2 else 1
        scores = {}
        for word, times in counts.items():
            share = times / len(own)
            lift = share * len(of_title) / everywhere[word]
            written = len(word) > (SHORT if word in small else 1) and any(letter.isalpha() for letter in word)
            if times >= least and (lift > 1 or len(members) == 1) and spread[word] <= most and written:
                scores[word] = (
                    share
                    * np.log(max(lift, 1.01))
                    * (np.log(1 + len(members)) - spread[word]) ** 2
                    * (SMALL if word in small else 1)
                )
        ranked: list[str] = []
        for word in sorted(scores, key=lambda word: (-round(scores[word], 9), word)):
            if scores[word] >= FAINT * max(scores.values()) and not any(
                _variants(word, other) for other in ranked
            ):
                ranked.append(word)
            if len(ranked) == TOKENS_KEPT:
                break
        chosen.append(ranked)
    return chosen


def _written_small(words: Words) -> set[str]:
    """Words that titles mostly write with a small letter."""
    balance: Counter[str] = Counter()
    for row, own in enumerate(words.folded):
        for place, word in enumerate(own):
            balance[word] += 1 if words.text(row, place, place).islower() else -1
    return {word for word, times in balance.items() if times > 0}


def _variants(one: str, other: str) -> bool:
    """Whether one word is little more than the other with an ending: match, matches."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 3


def _most_central(vectors: np.ndarray, rows: list[int]) -> list[int]:
    """The rows by falling cosine with their mean; equal ones by number."""
    cosines = np.round(vectors[rows] @ vectors[rows].mean(axis=0), 6)
    return [rows[place] for place in np.argsort(-cosines, kind="stable").tolist()]


def _heading(label: str, words: Words, own: list[int]) -> str:
    """The category with a capital, or as titles of the cluster write it: WWE."""
    forms = [
        (words.text(row, place, place), words.titles[row])
        for row in own
        for place, word in enumerate(words.folded[row])
        if word == label.casefold()
    ]
    written = most_written(forms) if forms else label
    return written[:1].upper() + written[1:]


def _telling(phrases: list[Phrase], size: int, label: str | None) -> list[str]:
    """Phrases that cover a real share of the titles; none says the category or a phrase before it again."""
    said = [match.group() for match in WORD.finditer((label or "").casefold())]
    chosen: list[str] = []
    covered: set[int] = set()
    for phrase in phrases:
        repeats = all(any(word == other or _variants(word, other) for other in said) for word in phrase.words)
        if (
            not repeats
            and len(phrase.rows) >= LEAST_SHARE * size
            and 2 * len(phrase.rows - covered) >= len(phrase.rows)
        ):
            chosen.append(phrase.text[:1].upper() + phrase.text[1:] if phrase.text.islower() else phrase.text)
            covered |= phrase.rows
            said += phrase.words
    return chosen[: WORDS_IN_NAME - 1 if label else WORDS_IN_NAME]


def _unused(parts: list[str], title: str, taken: set[str]) -> str:
    """The parts joined; with a central title where none are or the name is taken; then a number."""
    name = SEPARATOR.join(parts)
    if not name or name in taken:
        name = SEPARATOR.join([*parts, f"“{title}”"])
    if name not in taken:
        return name
    return next(
        numbered for number in range(2, len(taken) + 3) if (numbered := f"{name} ({number})") not in taken
    )
