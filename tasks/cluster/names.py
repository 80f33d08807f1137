"""Names of clusters: a general part and a telling part, "Football: Premier League, LaLiga".

The general part is the subject that most of the titles have, the narrowest of such: "True crime" where nearly
all of the documentaries are. Telling parts are subjects within it, phrases that several shows of the cluster
hold, and the channel that most of them air on (tasks/cluster/candidates.py). Where nothing telling covers
enough titles the name is the general part alone: general is better than wrong. No two clusters have one name:
the second takes a channel, a further part, at last a central title. A part of a cluster that nothing tells
from the others has no name.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Float, Int
from tasks.cluster.candidates import MAJORITY, NEAR, VERY_NEAR, Candidate, Candidates
from tasks.cluster.partition import members_of
from tasks.cluster.phrases import words_of
from tasks.cluster.subjects import FICTION, FILMS

PLURALITY = 0.33  # enough for the general part where no other has half as many
LEVEL = 0.98  # of the share of the commonest broad subject, for another of a higher score to take its place
NARROWER = 0.8  # of the titles of the broader subject: a narrower one on so many is preferred
FILM_SHARE = 0.6  # of long single programmes, for a cluster of invented stories to be called films
SHARED_CHANNEL = 0.5  # of the titles, for a channel or two to be told where little else is
SAID = 0.3  # of the titles that have a subject by category, where meaning alone is not enough
WEAKER = 0.5  # times the shares that make a subject a candidate, where nothing else tells two clusters apart
WEAK = 0.4  # of the best part's score: a second part below it is left out
PARTS = 2


@dataclass(frozen=True)
class ClusterName:
    """One cluster, for people; ``clusters.json`` and ``subclusters.json`` hold it."""

    id: int  # in the labels
    name: str
    size: int
    titles: list[str]  # the most central ones
    label: str | None  # category that at least half of its titles carry, the rarest of nearly equal ones
    label_share: float  # part of its titles that carry it


def name_clusters(
    candidates: Candidates,
    vectors: Float[np.ndarray, "titles dim"],
    clusters: Int[np.ndarray, " titles"],
    within: Sequence[str] | None = None,
    *,
    central: int = 5,
) -> list[ClusterName]:
    """Names of all clusters, in the order of their ids (from 0 without gaps; -1 is noise), no two alike.

    ``within`` holds for each the name of the cluster that it is a part of: parts differ in name from that and
    from the other parts of it, and one that nothing tells from them has none, "".
    """
    used: dict[str, set[str]] = {}
    found = []
    for number, own in enumerate(members_of(clusters)):
        cosines = np.round(vectors[own] @ vectors[own].mean(axis=0), 6)
        order: list[int] = own[np.argsort(-cosines, kind="stable")[:central]].tolist()
        nearest = [candidates.about.titles[row] for row in order]
        whole = within[number] if within else ""
        taken = used.setdefault(whole, {whole})
        wanted = _Wanted(candidates, own)
        names = itertools.chain(wanted.telling(), [""] if within else wanted.apart(nearest))
        name = next(name for name in names if not name or name not in taken)
        taken.add(name)
        label, share = _category(candidates, own)
        found.append(ClusterName(number, name, len(own), nearest, label, share))
    return found


def _category(candidates: Candidates, own: Int[np.ndarray, " members"]) -> tuple[str | None, float]:
    rows: list[int] = own.tolist()
    votes = Counter(label for row in rows for label in set(candidates.about.labels[row]))
    least = max(NARROWER * max(votes.values(), default=0), MAJORITY * len(own))
    enough = [label for label, times in votes.items() if times >= least]
    if not enough:
        return None, 0.0
    label = min(enough, key=lambda label: (candidates.carried[label], label))
    return label, votes[label] / len(own)


class _Wanted:
    """Names of a cluster in the order in which they are wanted."""

    def __init__(self, candidates: Candidates, own: Int[np.ndarray, " members"]) -> None:
        subjects, self.channels = candidates.find_subjects(own), candidates.find_channels(own)
        general = _general(candidates, own, subjects)
        films = general is not None and general.key == FILMS  # words of films' titles tell nothing
        phrases = [] if films else candidates.find_phrases(own)
        if general:  # one word says too little beside it: Cookery: Jamie
            phrases = [one for one in phrases if len(words_of(one.text)) > 1]
        inner = [one for one in subjects if _within(one, general)]
        best = _best(inner)
        if general and best and best.share >= SAID and _repeats(best, general):
            general, inner = best, []  # Crime drama, not Drama: Crime drama
        self.head = general.text if general else ""
        self.parts = _choose([*inner, *phrases], general)
        weak = [one for one in candidates.find_subjects(own, WEAKER) if general and _within(one, general)]
        self.weak = _choose(weak, general)
        again = [one for one in weak if general and one.near >= NEAR and _repeats(one, general)]
        self.again = [one.text for one in sorted(again, key=lambda one: -one.score)]

    def telling(self) -> Iterator[str]:
        """Those that say what most of the titles are."""
        head, parts, first = self.head, self.parts, self.parts[:PARTS]
        most = [name for name, share in self.channels[:1] if share >= SHARED_CHANNEL]
        if not head:
            yield from most
            yield from [_joined("", first)] if first else []
            return
        if first or not most:
            yield _joined(head, first)
        yield from (_with_channel(head, first[:1], name) for name in most)
        yield from (_joined(head, [*first[:1], other]) for other in parts[PARTS:])
        if not first and sum(share for _, share in self.channels[:2]) >= SHARED_CHANNEL:
            yield _joined(head, [name for name, _ in self.channels[:2]])
        yield _joined(head, first[:1])

    def apart(self, nearest: list[str]) -> Iterator[str]:
        """Those that only tell it apart from others, without end."""
        first = self.parts[:PARTS]
        yield from (_joined(self.head, self.weak[:count]) for count in (PARTS, 1) if self.weak)
        yield from self.again  # World news, not News: World news
        yield from (_with_channel(self.head, first[:1], name) for name, _ in self.channels)
        title = _joined(self.head, [*first, f"“{min(nearest, key=len)}”"])
        yield title
        yield from (f"{title} ({number})" for number in itertools.count(2))


def _general(
    candidates: Candidates, own: Int[np.ndarray, " members"], subjects: Sequence[Candidate]
) -> Candidate | None:
    """The subject that most titles of a cluster have, else a category that most carry, else None."""
    broad = [one for one in subjects if not one.general]
    *_, second, best = sorted([0.0, 0.0, *(one.share for one in broad)])
    if best < MAJORITY and (best < PLURALITY or best < 2 * second):
        broad = []
    general = _best(one for one in broad if one.share >= LEVEL * best)
    if candidates.about.films[own].mean() >= FILM_SHARE and (general is None or general.key in FICTION):
        told = frozenset().union(*(one.rows for one in subjects if {one.key, one.general} & FICTION))
        if len(told) >= MAJORITY * len(own):
            name = next(
                one.name(candidates.about.language) for one in candidates.subjects if one.key == FILMS
            )
            return Candidate(name, told, 0.0, 1.0, FILMS)
    narrow = [one for one in subjects if one.general and one.share >= MAJORITY]
    if general is not None:
        narrow = [one for one in narrow if one.general == general.key]
        narrow = [one for one in narrow if one.share >= NARROWER * general.share]
    found = _best(narrow) or general or _best(one for one in subjects if one.near >= VERY_NEAR)
    label, share = _category(candidates, own)
    if found is None and label is not None:
        return Candidate(label[:1].upper() + label[1:], frozenset(), 0.0, share)
    return found


def _best(found) -> Candidate | None:
    return max(found, key=lambda one: (one.score, one.text), default=None)


def _within(subject: Candidate, general: Candidate | None) -> bool:
    """Whether a subject may tell more of the general one: a part of it, or a kind of film."""
    if general is None or not general.key:  # nothing, or a category that the table lacks
        return subject.share >= SAID
    if subject.key == general.key:
        return False
    if general.key == FILMS:
        return bool({subject.key, subject.general} & FICTION)
    return subject.general == general.key


def _choose(candidates: Sequence[Candidate], general: Candidate | None) -> list[str]:
    """Texts of candidates, best first, none repeating a word of the general part or one before it, or its
    titles; of the two that are wanted first a subject stands before a phrase.
    """
    used = [word.casefold() for word in words_of(general.text)] if general else []
    chosen: list[Candidate] = []
    covered: set[int] = set()
    for one in sorted(candidates, key=lambda one: (-one.score, one.text)):
        words = [word.casefold() for word in words_of(one.text)]
        repeats = any(_variants(word, other) for word in words for other in used)
        known = bool(one.rows) and 2 * len(one.rows - covered) < len(one.rows)
        if not repeats and not known and (not chosen or one.score >= WEAK * chosen[0].score):
            chosen.append(one)
            covered |= one.rows
            used += words
    first = sorted(chosen[:PARTS], key=lambda one: not one.key)
    return [one.text for one in [*first, *chosen[PARTS:]]]


def _repeats(subject: Candidate, general: Candidate) -> bool:
    words = [word.casefold() for word in words_of(subject.text)]
    return any(_variants(word, other.casefold()) for word in words for other in words_of(general.text))


def _variants(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 3)


def _with_channel(head: str, parts: Sequence[str], channel: str) -> str:
    name = _joined(head, parts)
    said = {word.casefold() for word in words_of(name)}
    return name if said.issuperset(words_of(channel.casefold())) else _joined(head, [*parts, channel])


def _joined(head: str, parts: Sequence[str]) -> str:
    return ": ".join(part for part in (head, ", ".join(parts)) if part)
