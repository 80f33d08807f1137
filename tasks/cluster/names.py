"""Composes the names of clusters of titles, such as "Football: Premier League, LaLiga".

A name consists of a *general part* ("Football") and up to two *specific parts* ("Premier League"). The
general part is the narrowest subject that most of the titles have, such as "True crime" instead of
"Documentary". A specific part is a narrower subject, a phrase in titles of several shows, or the channel that
airs most of the titles (tasks/cluster/candidates.py). If no specific part covers enough titles, the name
consists of the general part alone. Names of clusters are unique: if another cluster already has a name, a
channel, a further specific part, or a title in quotation marks is added. A subcluster without a name that
differs from those of the other subclusters of its cluster is called "".
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Float, Int
from tasks.cluster.candidates import GENERAL_COSINE, MAJORITY, MIN_VOTE_COSINE, Candidate, CandidateFinder
from tasks.cluster.partition import titles_by_cluster
from tasks.cluster.phrases import words_of
from tasks.cluster.subjects import FICTION, FILMS

PLURALITY = 0.33  # minimum share of titles with the general part, if it is twice that of any other subject
TIE_SHARE = 0.98  # broad subjects with at least this fraction of the largest share are compared by score
NARROWER_SHARE = 0.8  # a narrower subject is preferred if this fraction of the broader one's titles have it
FILM_SHARE = 0.6  # a cluster of fiction is named Films if at least this share of its titles are films
CHANNEL_MAJORITY = 0.5  # minimum share of the titles that air on a channel that is part of the name
CATEGORY_SHARE = 0.3  # minimum share of titles with a subject that is named without a broader subject
RELAXED_FACTOR = 0.5  # factor on thresholds of candidates, for parts that only distinguish two clusters
MIN_SCORE_RATIO = 0.4  # minimum score of a further part, divided by the score of the best part
MAX_PARTS = 2  # maximum number of specific parts


@dataclass(frozen=True)
class ClusterName:
    """Name and description of a cluster; an entry of ``clusters.json`` or ``subclusters.json``."""

    id: int  # number of the cluster, from 0
    name: str
    size: int  # number of titles
    titles: list[str]  # titles nearest to the mean vector of the cluster
    label: str | None  # category of at least half of the titles; None if there is none
    label_share: float  # fraction of the titles that have the category ``label``


def name_clusters(
    finder: CandidateFinder,
    vectors: Float[np.ndarray, "titles dim"],
    clusters: Int[np.ndarray, " titles"],
    parents: Sequence[str] | None = None,
    *,
    central: int = 5,
) -> list[ClusterName]:
    """Returns the name and the description of each cluster, in the order of cluster numbers.

    Args:
        finder: Finds candidates for the parts of names.
        vectors: Vectors of titles, float32 (titles, dim), unit norm or zero.
        clusters: Cluster of each title, from 0 without gaps; -1 is noise.
        parents: Name of the cluster that contains each subcluster, if ``clusters`` are subclusters. The name
            of a subcluster differs from the names of its cluster and of the other subclusters of the cluster.
        central: Number of central titles in the description of a cluster.
    """
    used_by_parent: dict[str, set[str]] = {}
    names = []
    for number, members in enumerate(titles_by_cluster(clusters)):
        cosines = np.round(vectors[members] @ vectors[members].mean(axis=0), 6)
        order: list[int] = members[np.argsort(-cosines, kind="stable")[:central]].tolist()
        nearest_titles = [finder.inputs.titles[row] for row in order]
        parent = parents[number] if parents else ""
        used_names = used_by_parent.setdefault(parent, {parent})
        options = _NameOptions(finder, members)
        ranked_names = itertools.chain(
            options.descriptive_names(), [""] if parents else options.distinguishing_names(nearest_titles)
        )
        name = next(name for name in ranked_names if not name or name not in used_names)
        used_names.add(name)
        label, share = _main_category(finder, members)
        names.append(ClusterName(number, name, len(members), nearest_titles, label, share))
    return names


def _main_category(finder: CandidateFinder, members: Int[np.ndarray, " members"]) -> tuple[str | None, float]:
    """Returns a category that most titles of a cluster have, and its share of the titles, or (None, 0).

    Among categories that are nearly as frequent in the cluster, the rarest category in the guide is returned.
    """
    rows: list[int] = members.tolist()
    counts = Counter(label for row in rows for label in set(finder.inputs.labels[row]))
    min_count = max(NARROWER_SHARE * max(counts.values(), default=0), MAJORITY * len(members))
    frequent_labels = [label for label, count in counts.items() if count >= min_count]
    if not frequent_labels:
        return None, 0.0
    label = min(frequent_labels, key=lambda label: (finder.label_counts[label], label))
    return label, counts[label] / len(members)


class _NameOptions:
    """Possible names of one cluster, in order of preference."""

    def __init__(self, finder: CandidateFinder, members: Int[np.ndarray, " members"]) -> None:
        subjects, self.channels = finder.find_subjects(members), finder.find_channels(members)
        general = _general_part(finder, members, subjects)
        # phrases in titles of films do not describe the subject of the films
        is_films = general is not None and general.key == FILMS
        phrases = [] if is_films else finder.find_phrases(members)
        if general:  # a single word after a general part is too vague, as in "Cookery: Jamie"
            phrases = [phrase for phrase in phrases if len(words_of(phrase.text)) > 1]
        narrower_subjects = [subject for subject in subjects if _is_narrower(subject, general)]
        best = _best_candidate(narrower_subjects)
        if general and best and best.share >= CATEGORY_SHARE and _repeats_word(best, general):
            general, narrower_subjects = best, []  # "Crime drama" instead of "Drama: Crime drama"
        self.general = general.text if general else ""
        self.parts = _select_parts([*narrower_subjects, *phrases], general)
        rarer_subjects = finder.find_subjects(members, RELAXED_FACTOR)
        rarer_subjects = [subject for subject in rarer_subjects if general and _is_narrower(subject, general)]
        self.rarer_parts = _select_parts(rarer_subjects, general)
        replacements = [subject for subject in rarer_subjects if general and _repeats_word(subject, general)]
        replacements = [subject for subject in replacements if subject.cosine >= MIN_VOTE_COSINE]
        replacements.sort(key=lambda subject: -subject.score)
        self.general_replacements = [subject.text for subject in replacements]

    def descriptive_names(self) -> Iterator[str]:
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

    def distinguishing_names(self, nearest_titles: list[str]) -> Iterator[str]:
        """Yields an unlimited number of names, for the case that other clusters have the descriptive names.

        ``nearest_titles`` are the most central titles of the cluster. The shortest of them may become a part.
        """
        best_parts = self.parts[:MAX_PARTS]
        counts = (MAX_PARTS, 1) if self.rarer_parts else ()
        yield from (_join(self.general, self.rarer_parts[:count]) for count in counts)
        yield from self.general_replacements  # "World news" instead of "News: World news"
        yield from (_join_channel(self.general, best_parts[:1], name) for name, _ in self.channels)
        name_with_title = _join(self.general, [*best_parts, f"“{min(nearest_titles, key=len)}”"])
        yield name_with_title
        yield from (f"{name_with_title} ({number})" for number in itertools.count(2))


def _general_part(
    finder: CandidateFinder, members: Int[np.ndarray, " members"], subjects: Sequence[Candidate]
) -> Candidate | None:
    """Returns the general part of a name, or None if no subject or category fits most of the titles."""
    broad_subjects = [subject for subject in subjects if not subject.broader_key]
    *_, second_share, best_share = sorted([0.0, 0.0, *(subject.share for subject in broad_subjects)])
    if best_share < MAJORITY and (best_share < PLURALITY or best_share < 2 * second_share):
        broad_subjects = []
    general = _best_candidate(
        subject for subject in broad_subjects if subject.share >= TIE_SHARE * best_share
    )
    mostly_films = finder.inputs.is_film[members].mean() >= FILM_SHARE
    if mostly_films and (general is None or general.key in FICTION):
        fiction = [subject.rows for subject in subjects if {subject.key, subject.broader_key} & FICTION]
        rows = frozenset().union(*fiction)
        if len(rows) >= MAJORITY * len(members):
            subject = next(subject for subject in finder.subjects if subject.key == FILMS)
            return Candidate(subject.name(finder.inputs.language), rows, 0.0, 1.0, FILMS)
    narrow_subjects = [subject for subject in subjects if subject.broader_key and subject.share >= MAJORITY]
    if general is not None:
        min_share = NARROWER_SHARE * general.share
        narrow_subjects = [
            subject
            for subject in narrow_subjects
            if subject.broader_key == general.key and subject.share >= min_share
        ]
    similar_subjects = (subject for subject in subjects if subject.cosine >= GENERAL_COSINE)
    best_subject = _best_candidate(narrow_subjects) or general or _best_candidate(similar_subjects)
    label, share = _main_category(finder, members)
    if best_subject is None and label is not None:
        return Candidate(label[:1].upper() + label[1:], frozenset(), 0.0, share)
    return best_subject


def _best_candidate(candidates: Iterable[Candidate]) -> Candidate | None:
    """Returns the candidate with the highest score, or None if there are no candidates."""
    return max(candidates, key=lambda candidate: (candidate.score, candidate.text), default=None)


def _is_narrower(subject: Candidate, general: Candidate | None) -> bool:
    """Returns whether a subject is more specific than the general part of a cluster's name.

    Every genre of fiction is narrower than Films. If there is no general part, or if it is a category that is
    not in the table of subjects, every subject with a share of at least CATEGORY_SHARE is narrower.
    """
    if general is None or not general.key:
        return subject.share >= CATEGORY_SHARE
    if subject.key == general.key:
        return False
    if general.key == FILMS:
        return bool({subject.key, subject.broader_key} & FICTION)
    return subject.broader_key == general.key


def _select_parts(candidates: Sequence[Candidate], general: Candidate | None) -> list[str]:
    """Selects the specific parts of a name from candidates and returns their texts, by descending score.

    Among the first MAX_PARTS texts, subjects come before phrases. A candidate is omitted if

    - it repeats a word of the general part or of a part that was already selected,
    - more than half of its titles contain a part that was already selected, or
    - its score is much lower than the best score.
    """
    used_words = [word.casefold() for word in words_of(general.text)] if general else []
    selected: list[Candidate] = []
    covered_rows: set[int] = set()
    for candidate in sorted(candidates, key=lambda candidate: (-candidate.score, candidate.text)):
        words = [word.casefold() for word in words_of(candidate.text)]
        repeats_word = any(_are_variants(word, used_word) for word in words for used_word in used_words)
        is_redundant = bool(candidate.rows) and 2 * len(candidate.rows - covered_rows) < len(candidate.rows)
        is_weak = bool(selected) and candidate.score < MIN_SCORE_RATIO * selected[0].score
        if not repeats_word and not is_redundant and not is_weak:
            selected.append(candidate)
            covered_rows |= candidate.rows
            used_words += words
    best = sorted(selected[:MAX_PARTS], key=lambda candidate: not candidate.key)
    return [candidate.text for candidate in [*best, *selected[MAX_PARTS:]]]


def _repeats_word(subject: Candidate, general: Candidate) -> bool:
    """Returns whether the text of a subject contains a word of the general part, or a variant of it."""
    words = [word.casefold() for word in words_of(subject.text)]
    return any(_are_variants(word, term.casefold()) for word in words for term in words_of(general.text))


def _are_variants(word: str, other_word: str) -> bool:
    """Returns whether two words are equal or differ only by a suffix, such as "cook" and "cooking".

    The suffix has at most three letters, and the shorter word has at least four.
    """
    shorter, longer = sorted((word, other_word), key=len)
    return word == other_word or (
        len(shorter) >= 4 and longer.startswith(shorter) and len(longer) - len(shorter) <= 3
    )


def _join_channel(general: str, parts: Sequence[str], channel: str) -> str:
    """Joins the parts of a name and a channel, which is omitted if the parts contain all of its words."""
    name = _join(general, parts)
    words = {word.casefold() for word in words_of(name)}
    return name if words.issuperset(words_of(channel.casefold())) else _join(general, [*parts, channel])


def _join(general: str, parts: Sequence[str]) -> str:
    return ": ".join(part for part in (general, ", ".join(parts)) if part)
