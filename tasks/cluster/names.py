"""Composes the names of clusters of titles, such as "Football: Premier League, LaLiga".

A name consists of a *general part* ("Football") and up to two *specific parts* ("Premier League"). The
general part is the narrowest subject that most of the titles have, such as "True crime" instead of
"Documentary". A specific part is a narrower subject, a phrase in titles of several shows, or the channel that
airs most of the titles (tasks/cluster/candidates.py). If none of these covers enough titles, the name is only
the general part. Names are unique: if another cluster has the name, a channel, a further part or the title of
a central programme is added. If nothing distinguishes a subcluster from the others, its name is "".
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Float, Int
from tasks.cluster.candidates import GENERAL_COSINE, MAJORITY, MIN_VOTE_COSINE, Candidate, Candidates
from tasks.cluster.partition import titles_by_cluster
from tasks.cluster.phrases import words_of
from tasks.cluster.subjects import FICTION, FILMS

PLURALITY = 0.33  # minimum share of titles with the general part, if no other subject has half as many
TIE_SHARE = 0.98  # broad subjects with this fraction of the largest share are compared by score
NARROWER_SHARE = 0.8  # a narrower subject is preferred if it has this fraction of the broader one's titles
FILM_SHARE = 0.6  # a cluster of fiction is named Films if this share of its titles are probably films
CHANNEL_MAJORITY = 0.5  # minimum share of the titles that air on a channel that is part of the name
CATEGORY_SHARE = 0.3  # minimum share of titles with a subject as category, if its cosine is too low
RELAXED_FACTOR = 0.5  # factor on the thresholds of candidates, for names that only distinguish two clusters
MIN_SCORE_RATIO = 0.4  # minimum score of a further part, divided by the score of the best part
MAX_PARTS = 2  # maximum number of specific parts


@dataclass(frozen=True)
class ClusterName:
    """Name and description of one cluster; an entry of ``clusters.json`` or ``subclusters.json``."""

    id: int  # number of the cluster, from 0
    name: str
    size: int  # number of titles
    titles: list[str]  # titles nearest to the mean vector of the cluster
    label: str | None  # category of at least half of the titles; among similar shares, the rarest
    label_share: float  # fraction of the titles that have this category


def name_clusters(
    candidates: Candidates,
    vectors: Float[np.ndarray, "titles dim"],
    clusters: Int[np.ndarray, " titles"],
    parents: Sequence[str] | None = None,
    *,
    central: int = 5,
) -> list[ClusterName]:
    """Returns a unique name for each cluster, in the order of cluster numbers.

    Args:
        candidates: Finds candidates for the parts of names.
        vectors: Vectors of titles, float32 (titles, dim), unit norm or zero.
        clusters: Cluster of each title, from 0 without gaps; -1 is noise.
        parents: For subclusters, the name of the cluster that contains each. The name of a subcluster differs
            from the name of its cluster and of the other subclusters of this cluster.
        central: Number of central titles in the description of a cluster.
    """
    used_by_parent: dict[str, set[str]] = {}
    names = []
    for number, members in enumerate(titles_by_cluster(clusters)):
        cosines = np.round(vectors[members] @ vectors[members].mean(axis=0), 6)
        order: list[int] = members[np.argsort(-cosines, kind="stable")[:central]].tolist()
        nearest_titles = [candidates.inputs.titles[row] for row in order]
        parent = parents[number] if parents else ""
        used_names = used_by_parent.setdefault(parent, {parent})
        options = _NameOptions(candidates, members)
        ranked_names = itertools.chain(
            options.describing_names(), [""] if parents else options.further_names(nearest_titles)
        )
        name = next(name for name in ranked_names if not name or name not in used_names)
        used_names.add(name)
        label, share = _main_category(candidates, members)
        names.append(ClusterName(number, name, len(members), nearest_titles, label, share))
    return names


def _main_category(candidates: Candidates, members: Int[np.ndarray, " members"]) -> tuple[str | None, float]:
    """Returns the category of most titles of a cluster and its share of titles; (None, 0) if none."""
    rows: list[int] = members.tolist()
    votes = Counter(label for row in rows for label in set(candidates.inputs.labels[row]))
    min_count = max(NARROWER_SHARE * max(votes.values(), default=0), MAJORITY * len(members))
    frequent_labels = [label for label, count in votes.items() if count >= min_count]
    if not frequent_labels:
        return None, 0.0
    label = min(frequent_labels, key=lambda label: (candidates.label_counts[label], label))
    return label, votes[label] / len(members)


class _NameOptions:
    """Possible names of one cluster, in order of preference."""

    def __init__(self, candidates: Candidates, members: Int[np.ndarray, " members"]) -> None:
        subjects, self.channels = candidates.find_subjects(members), candidates.find_channels(members)
        general = _general_part(candidates, members, subjects)
        # phrases in titles of films say nothing about their subject
        is_films = general is not None and general.key == FILMS
        phrases = [] if is_films else candidates.find_phrases(members)
        if general:  # a single word after a general part is too vague, as in "Cookery: Jamie"
            phrases = [phrase for phrase in phrases if len(words_of(phrase.text)) > 1]
        narrower_subjects = [subject for subject in subjects if _is_narrower(subject, general)]
        best = _best_candidate(narrower_subjects)
        if general and best and best.share >= CATEGORY_SHARE and _repeats_word(best, general):
            general, narrower_subjects = best, []  # "Crime drama" instead of "Drama: Crime drama"
        self.general = general.text if general else ""
        self.parts = _select_parts([*narrower_subjects, *phrases], general)
        weak_subjects = candidates.find_subjects(members, RELAXED_FACTOR)
        weak_subjects = [subject for subject in weak_subjects if general and _is_narrower(subject, general)]
        self.weak_parts = _select_parts(weak_subjects, general)
        replacing = [subject for subject in weak_subjects if general and _repeats_word(subject, general)]
        replacing = [subject for subject in replacing if subject.cosine >= MIN_VOTE_COSINE]
        self.replacing = [subject.text for subject in sorted(replacing, key=lambda subject: -subject.score)]

    def describing_names(self) -> Iterator[str]:
        """Yields names that describe most of the titles, best first."""
        general, parts, best_parts = self.general, self.parts, self.parts[:MAX_PARTS]
        channels = [name for name, share in self.channels[:1] if share >= CHANNEL_MAJORITY]
        if not general:
            yield from channels
            yield from [_join("", best_parts)] if best_parts else []
            return
        if best_parts or not channels:
            yield _join(general, best_parts)
        yield from (_join_channel(general, best_parts[:1], name) for name in channels)
        yield from (_join(general, [*best_parts[:1], part]) for part in parts[MAX_PARTS:])
        if not best_parts and sum(share for _, share in self.channels[:2]) >= CHANNEL_MAJORITY:
            yield _join(general, [name for name, _ in self.channels[:2]])
        yield _join(general, best_parts[:1])

    def further_names(self, nearest_titles: list[str]) -> Iterator[str]:
        """Yields an unlimited number of further names, if other clusters have the descriptive names.

        ``nearest_titles`` are the most central titles of the cluster. The shortest may become a part.
        """
        best_parts = self.parts[:MAX_PARTS]
        counts = (MAX_PARTS, 1) if self.weak_parts else ()
        yield from (_join(self.general, self.weak_parts[:count]) for count in counts)
        yield from self.replacing  # "World news" instead of "News: World news"
        yield from (_join_channel(self.general, best_parts[:1], name) for name, _ in self.channels)
        name_with_title = _join(self.general, [*best_parts, f"“{min(nearest_titles, key=len)}”"])
        yield name_with_title
        yield from (f"{name_with_title} ({number})" for number in itertools.count(2))


def _general_part(
    candidates: Candidates, members: Int[np.ndarray, " members"], subjects: Sequence[Candidate]
) -> Candidate | None:
    """Returns the general part of a name, or None if no subject or category fits most of the titles."""
    broad_subjects = [subject for subject in subjects if not subject.general]
    *_, second, best = sorted([0.0, 0.0, *(subject.share for subject in broad_subjects)])
    if best < MAJORITY and (best < PLURALITY or best < 2 * second):
        broad_subjects = []
    general = _best_candidate(subject for subject in broad_subjects if subject.share >= TIE_SHARE * best)
    mostly_films = candidates.inputs.films[members].mean() >= FILM_SHARE
    if mostly_films and (general is None or general.key in FICTION):
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
    best_subject = _best_candidate(narrow) or general or _best_candidate(by_cosine)
    label, share = _main_category(candidates, members)
    if best_subject is None and label is not None:
        return Candidate(label[:1].upper() + label[1:], frozenset(), 0.0, share)
    return best_subject


def _best_candidate(candidates: Iterable[Candidate]) -> Candidate | None:
    """Returns the candidate with the highest score, or None if there are no candidates."""
    return max(candidates, key=lambda candidate: (candidate.score, candidate.text), default=None)


def _is_narrower(subject: Candidate, general: Candidate | None) -> bool:
    """Whether a subject is narrower than the general part. Genres of fiction are narrower than Films."""
    if general is None or not general.key:  # no general part, or a category that is not in the table
        return subject.share >= CATEGORY_SHARE
    if subject.key == general.key:
        return False
    if general.key == FILMS:
        return bool({subject.key, subject.general} & FICTION)
    return subject.general == general.key


def _select_parts(candidates: Sequence[Candidate], general: Candidate | None) -> list[str]:
    """Selects the specific parts of a name and returns their texts, by descending score.

    Among the first two, subjects come before phrases. A candidate is omitted if

    - it repeats a word of the general part or of a part that was already selected,
    - more than half of its titles contain a part that was already selected, or
    - its score is much lower than the best score.
    """
    used_words = [word.casefold() for word in words_of(general.text)] if general else []
    selected: list[Candidate] = []
    covered_rows: set[int] = set()
    for candidate in sorted(candidates, key=lambda candidate: (-candidate.score, candidate.text)):
        words = [word.casefold() for word in words_of(candidate.text)]
        repeats = any(_are_variants(word, used_word) for word in words for used_word in used_words)
        redundant = bool(candidate.rows) and 2 * len(candidate.rows - covered_rows) < len(candidate.rows)
        is_weak = bool(selected) and candidate.score < MIN_SCORE_RATIO * selected[0].score
        if not repeats and not redundant and not is_weak:
            selected.append(candidate)
            covered_rows |= candidate.rows
            used_words += words
    best = sorted(selected[:MAX_PARTS], key=lambda candidate: not candidate.key)
    return [candidate.text for candidate in [*best, *selected[MAX_PARTS:]]]


def _repeats_word(subject: Candidate, general: Candidate) -> bool:
    words = [word.casefold() for word in words_of(subject.text)]
    return any(_are_variants(word, term.casefold()) for word in words for term in words_of(general.text))


def _are_variants(word: str, other_word: str) -> bool:
    """Whether two words are equal, or differ only by a suffix: "cook", "cooking".

    The shorter word has at least four letters, and the suffix at most three.
    """
    shorter, longer = sorted((word, other_word), key=len)
    return word == other_word or (
        len(shorter) >= 4 and longer.startswith(shorter) and len(longer) - len(shorter) <= 3
    )


def _join_channel(general: str, parts: Sequence[str], channel: str) -> str:
    """Joins the parts of a name and a channel. A channel whose words all occur in the parts is omitted."""
    name = _join(general, parts)
    words = {word.casefold() for word in words_of(name)}
    return name if words.issuperset(words_of(channel.casefold())) else _join(general, [*parts, channel])


def _join(general: str, parts: Sequence[str]) -> str:
    return ": ".join(part for part in (general, ", ".join(parts)) if part)
