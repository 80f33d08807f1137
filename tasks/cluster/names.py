"""Names of clusters: a general part and specific parts, as in "Football: Premier League, LaLiga".

The general part is the narrowest subject that most of the titles have: "True crime" for documentaries of
which nearly all are about crime. Specific parts are subjects within it, phrases that several shows of the
cluster contain, and the channel that most of them air on (tasks/cluster/candidates.py). If none of these
covers enough titles, the name is the general part alone, because a general name is better than a wrong one.
Names are unique: if a name is already used, a channel, a further part, or the title of a central programme is
added. A subcluster without a distinguishing name has the name "".
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Float, Int
from tasks.cluster.candidates import GENERAL_COSINE, MAJORITY, MIN_VOTE_COSINE, Candidate, Candidates
from tasks.cluster.partition import members_of
from tasks.cluster.phrases import words_of
from tasks.cluster.subjects import FICTION, FILMS

PLURALITY = 0.33  # sufficient share for the general part if no other subject has half as many titles
TIE_SHARE = 0.98  # of broad subjects with at least this fraction of the largest share, the best score wins
NARROWER_SHARE = 0.8  # a narrower subject with this fraction of the broader one's titles is preferred
FILM_SHARE = 0.6  # a cluster of fiction is called films if this share of its titles air as films
SHARED_CHANNEL = 0.5  # minimum share of the titles that air on the channels named in place of other parts
CATEGORY_SHARE = 0.3  # minimum share of titles that have a subject as category, if its cosine is too low
RELAXED = 0.5  # factor on the thresholds of candidates, for names that only distinguish two clusters
SECOND_PART = 0.4  # minimum score of a further part, divided by the score of the best part
PARTS = 2  # maximum number of specific parts


@dataclass(frozen=True)
class ClusterName:
    """Description of one cluster, an entry of ``clusters.json`` or ``subclusters.json``."""

    id: int  # cluster number, from 0
    name: str
    size: int
    titles: list[str]  # the most central ones
    label: str | None  # category of at least half of its titles; the rarest of several with similar shares
    label_share: float  # fraction of its titles that have the category


def name_clusters(
    candidates: Candidates,
    vectors: Float[np.ndarray, "titles dim"],
    clusters: Int[np.ndarray, " titles"],
    within: Sequence[str] | None = None,
    *,
    central: int = 5,
) -> list[ClusterName]:
    """Names all clusters uniquely, in the order of their ids (from 0 without gaps; -1 is noise).

    Args:
        candidates: Finder of candidates for the parts of names.
        vectors: float32 (titles, dim), unit norm or zero.
        clusters: Cluster of each title.
        within: Name of the parent of each cluster, for subclusters. The name of a subcluster differs from its
            parent's and its siblings' names; it is "" if nothing distinguishes it.
        central: Number of central titles of each cluster.
    """
    used: dict[str, set[str]] = {}
    names = []
    for number, members in enumerate(members_of(clusters)):
        cosines = np.round(vectors[members] @ vectors[members].mean(axis=0), 6)
        order: list[int] = members[np.argsort(-cosines, kind="stable")[:central]].tolist()
        nearest = [candidates.inputs.titles[row] for row in order]
        parent = within[number] if within else ""
        taken = used.setdefault(parent, {parent})
        options = _NameOptions(candidates, members)
        ranked = itertools.chain(options.descriptive(), [""] if within else options.distinguishing(nearest))
        name = next(name for name in ranked if not name or name not in taken)
        taken.add(name)
        label, share = _category(candidates, members)
        names.append(ClusterName(number, name, len(members), nearest, label, share))
    return names


def _category(candidates: Candidates, members: Int[np.ndarray, " members"]) -> tuple[str | None, float]:
    rows: list[int] = members.tolist()
    votes = Counter(label for row in rows for label in set(candidates.inputs.labels[row]))
    minimum = max(NARROWER_SHARE * max(votes.values(), default=0), MAJORITY * len(members))
    frequent = [label for label, count in votes.items() if count >= minimum]
    if not frequent:
        return None, 0.0
    label = min(frequent, key=lambda label: (candidates.label_counts[label], label))
    return label, votes[label] / len(members)


class _NameOptions:
    """The possible names of one cluster, in order of preference."""

    def __init__(self, candidates: Candidates, members: Int[np.ndarray, " members"]) -> None:
        subjects, self.channels = candidates.find_subjects(members), candidates.find_channels(members)
        general = _general(candidates, members, subjects)
        # phrases in titles of films say nothing about their subject
        films = general is not None and general.key == FILMS
        phrases = [] if films else candidates.find_phrases(members)
        if general:  # a single word after a general part is too vague, as in "Cookery: Jamie"
            phrases = [phrase for phrase in phrases if len(words_of(phrase.text)) > 1]
        inner = [subject for subject in subjects if _within(subject, general)]
        best = _best(inner)
        if general and best and best.share >= CATEGORY_SHARE and _repeats(best, general):
            general, inner = best, []  # "Crime drama" instead of "Drama: Crime drama"
        self.head = general.text if general else ""
        self.parts = _choose([*inner, *phrases], general)
        relaxed = candidates.find_subjects(members, RELAXED)
        weak = [subject for subject in relaxed if general and _within(subject, general)]
        self.weak = _choose(weak, general)
        narrower = [subject for subject in weak if general and _repeats(subject, general)]
        narrower = [subject for subject in narrower if subject.cosine >= MIN_VOTE_COSINE]
        self.narrower = [subject.text for subject in sorted(narrower, key=lambda subject: -subject.score)]

    def descriptive(self) -> Iterator[str]:
        """Yields names that describe most of the titles."""
        head, parts, first = self.head, self.parts, self.parts[:PARTS]
        common = [name for name, share in self.channels[:1] if share >= SHARED_CHANNEL]
        if not head:
            yield from common
            yield from [_joined("", first)] if first else []
            return
        if first or not common:
            yield _joined(head, first)
        yield from (_with_channel(head, first[:1], name) for name in common)
        yield from (_joined(head, [*first[:1], other]) for other in parts[PARTS:])
        if not first and sum(share for _, share in self.channels[:2]) >= SHARED_CHANNEL:
            yield _joined(head, [name for name, _ in self.channels[:2]])
        yield _joined(head, first[:1])

    def distinguishing(self, nearest: list[str]) -> Iterator[str]:
        """Yields further names, for when the descriptive ones are used by other clusters; never ends."""
        first = self.parts[:PARTS]
        yield from (_joined(self.head, self.weak[:count]) for count in (PARTS, 1) if self.weak)
        yield from self.narrower  # "World news" instead of "News: World news"
        yield from (_with_channel(self.head, first[:1], name) for name, _ in self.channels)
        title = _joined(self.head, [*first, f"“{min(nearest, key=len)}”"])
        yield title
        yield from (f"{title} ({number})" for number in itertools.count(2))


def _general(
    candidates: Candidates, members: Int[np.ndarray, " members"], subjects: Sequence[Candidate]
) -> Candidate | None:
    """Returns the subject of most titles of a cluster, else their most common category, else None."""
    broad = [subject for subject in subjects if not subject.general]
    *_, second, best = sorted([0.0, 0.0, *(subject.share for subject in broad)])
    if best < MAJORITY and (best < PLURALITY or best < 2 * second):
        broad = []
    general = _best(subject for subject in broad if subject.share >= TIE_SHARE * best)
    films = candidates.inputs.films[members].mean() >= FILM_SHARE
    if films and (general is None or general.key in FICTION):
        fiction = [subject.rows for subject in subjects if {subject.key, subject.general} & FICTION]
        rows = frozenset().union(*fiction)
        if len(rows) >= MAJORITY * len(members):
            subject = next(subject for subject in candidates.subjects if subject.key == FILMS)
            return Candidate(subject.name(candidates.inputs.language), rows, 0.0, 1.0, FILMS)
    narrow = [subject for subject in subjects if subject.general and subject.share >= MAJORITY]
    if general is not None:
        narrow = [subject for subject in narrow if subject.general == general.key]
        narrow = [subject for subject in narrow if subject.share >= NARROWER_SHARE * general.share]
    by_cosine = (subject for subject in subjects if subject.cosine >= GENERAL_COSINE)
    chosen = _best(narrow) or general or _best(by_cosine)
    label, share = _category(candidates, members)
    if chosen is None and label is not None:
        return Candidate(label[:1].upper() + label[1:], frozenset(), 0.0, share)
    return chosen


def _best(candidates: Iterable[Candidate]) -> Candidate | None:
    return max(candidates, key=lambda candidate: (candidate.score, candidate.text), default=None)


def _within(subject: Candidate, general: Candidate | None) -> bool:
    """Whether a subject is narrower than the general part, or a kind of film if that is films."""
    if general is None or not general.key:  # no general part, or a category that is not in the table
        return subject.share >= CATEGORY_SHARE
    if subject.key == general.key:
        return False
    if general.key == FILMS:
        return bool({subject.key, subject.general} & FICTION)
    return subject.general == general.key


def _choose(candidates: Sequence[Candidate], general: Candidate | None) -> list[str]:
    """Returns the texts of candidates by falling score; of the first two, a subject precedes a phrase.

    Omits a candidate that repeats a word of the general part or of a better candidate. Omits it also if more
    than half of its titles contain a better candidate.
    """
    used = [word.casefold() for word in words_of(general.text)] if general else []
    chosen: list[Candidate] = []
    covered: set[int] = set()
    for candidate in sorted(candidates, key=lambda candidate: (-candidate.score, candidate.text)):
        words = [word.casefold() for word in words_of(candidate.text)]
        repeats = any(_variants(word, other) for word in words for other in used)
        redundant = bool(candidate.rows) and 2 * len(candidate.rows - covered) < len(candidate.rows)
        weak = bool(chosen) and candidate.score < SECOND_PART * chosen[0].score
        if not repeats and not redundant and not weak:
            chosen.append(candidate)
            covered |= candidate.rows
            used += words
    first = sorted(chosen[:PARTS], key=lambda candidate: not candidate.key)
    return [candidate.text for candidate in [*first, *chosen[PARTS:]]]


def _repeats(subject: Candidate, general: Candidate) -> bool:
    words = [word.casefold() for word in words_of(subject.text)]
    return any(_variants(word, other.casefold()) for word in words for other in words_of(general.text))


def _variants(word: str, other: str) -> bool:
    """Whether two words are equal, or differ only by a suffix: "cook", "cooking".

    The shorter word has at least four letters, and the suffix at most three.
    """
    short, long = sorted((word, other), key=len)
    return word == other or (len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 3)


def _with_channel(head: str, parts: Sequence[str], channel: str) -> str:
    name = _joined(head, parts)
    words = {word.casefold() for word in words_of(name)}
    return name if words.issuperset(words_of(channel.casefold())) else _joined(head, [*parts, channel])


def _joined(head: str, parts: Sequence[str]) -> str:
    return ": ".join(part for part in (head, ", ".join(parts)) if part)
