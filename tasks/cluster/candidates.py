"""Finds texts that may become parts of the name of a cluster, such as "Football: LaLiga".

Candidates are subjects ("Football", from subjects.csv), phrases that several titles contain ("LaLiga"), and
channels. A subject or phrase t gets the following score for a cluster c:

    share(t, c) · log(share(t, c) / share(t)) + COSINE_WEIGHT · cosine(t, c)

share(t, c) is the fraction of the titles of the cluster that contain t, and share(t) is the fraction of all
titles. cosine(t, c) is the mean cosine of the sentence vector of t and the sentence vectors of the titles of
the cluster; it is 0 without a sentence encoder. Before cosines are computed, the mean sentence vector of the
guide is subtracted from all vectors, because otherwise all cosines are high.

A subject that few titles contain may be a candidate because of *votes*. Among the subjects that have the same
broader subject, a title votes for the subject with the nearest sentence vector. About 30 % of the titles that
are about a subject vote for it, and about 3 % of all other titles do.
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from storage.arrays import row_blocks, unit_rows
from storage.shapes import Bool, Float, Float32, Int
from tasks.cluster.phrases import Phrases, words_of
from tasks.cluster.subjects import FICTION, broader_indices, find_title_subjects, read_subjects

EncodeTexts = Callable[[Sequence[str]], np.ndarray]
MAJORITY = 0.5  # minimum share of titles that have the subject (or category) with which the name begins
SUBJECT_SHARE = 0.3  # minimum share of a cluster's titles with a subject that is less frequent in the guide
MIN_SHOWS = 3  # minimum number of titles, and of different shows, that contain a phrase
PHRASE_SHARE = 0.25  # minimum share of a cluster's titles that contain a phrase of several words
WORD_SHARE = 0.6  # minimum share of a cluster's titles that contain a phrase of one word
MAX_PHRASES = 8  # maximum number of phrases that are candidates for a cluster
MIN_LIFT = 3.0  # minimum share(t, c) / share(t) of a phrase
WORD_WEIGHT = 0.5  # factor on the score of a phrase of one word
COSINE_WEIGHT = 4.0  # weight of the cosine in the score, in which share · log(lift) has weight 1
MIN_VOTE_COSINE = 0.15  # minimum cosine of a title with the subject for which it votes
VOTE_SHARE, MIN_VOTES = 0.2, 3  # minimum votes for a subject: this share of the titles plus 1, and at least 3
MIN_MEAN_COSINE = 0.06  # minimum mean cosine of a subject chosen by votes; a third if chosen by categories
BROADER_RATIO = 1.2  # minimum cosine of a subject chosen by votes, divided by that of its broader subject
GENERAL_COSINE = 0.2  # minimum mean cosine of a subject that begins the name because of votes alone
CHANNEL_SHARE = 0.1  # minimum share of the cluster's titles that air on a candidate channel
OVERLAP = 0.8  # a channel is omitted if a channel that was already chosen airs this share of its titles
LONG_DURATIONS = frozenset(f"duration:{minutes}" for minutes in (90, 120, 180))  # context tokens
EPISODES = "manner:episodes:2"  # context token of a title if most of its airings have an episode number
_QUALITIES_AND_REGIONS = "HD|HDTV|SD|UHD|4K|East|Eastern|West|Western|Pacific|Feed|US|USA|UK"
_CHANNEL_SUFFIXES = re.compile(  # " (HD)", " US", "+1"
    rf"\s*\([^)]*\)|[\s-]+(?:{_QUALITIES_AND_REGIONS})\b|\+\d\b", re.IGNORECASE
)
# Words that alone do not name a channel.
_GENERIC_WORDS = frozenset(
    ["the", "das", "die", "der", "les", "las", "los", "channel", "canal", "kanal", "radio"]
)


@dataclass(frozen=True, kw_only=True)
class NamingInputs:
    """Data from which the names of clusters are derived. Entry i of each sequence describes title i."""

    titles: Sequence[str]
    shows: Sequence[str]  # show keys: titles without additions such as "(New)"
    labels: Sequence[Sequence[str]]  # categories
    channels: Sequence[Sequence[str]]  # display names of channels
    is_film: np.ndarray  # bool (titles,): whether the title airs like a film, see find_films
    language: str = "en"  # language of the names, ISO 639-1
    sentence_vectors: np.ndarray | None = None  # (titles, features), unit norm or zero
    encode: EncodeTexts | None = None  # encoder of ``sentence_vectors``; None: subjects get no votes


@dataclass(frozen=True)
class Candidate:
    """Subject or phrase that may become a part of the name of a cluster."""

    text: str
    rows: frozenset[int]  # row numbers of the cluster's titles that contain the subject or phrase
    score: float
    share: float  # fraction of the cluster's titles that contain the subject or phrase
    key: str = ""  # key of the subject; "" for a phrase
    broader_key: str = ""  # key of the broader subject; "" if there is none
    cosine: float = 0.0  # mean cosine with the cluster's titles if the subject has enough votes; else 0


def find_films(contexts: Sequence[Sequence[str]]) -> Bool[np.ndarray, " titles"]:
    """Returns a mask of the titles that are probably films: 90 minutes or longer, without episode numbers.

    ``contexts`` has the context tokens of each title, which describe when and how the title airs.
    """
    return np.array(
        [bool(LONG_DURATIONS & set(tokens)) and EPISODES not in tokens for tokens in contexts], dtype=bool
    )


def most_common_language(codes: Sequence[str | None]) -> str:
    """Returns the most common language code, shortened to two letters, or "en" if all codes are None."""
    counts = Counter(code[:2].casefold() for code in codes if code)
    return min(counts, key=lambda code: (-counts[code], code), default="en")


class CandidateFinder:
    """Finds candidates (subjects, phrases, channels) for the names of clusters in a guide."""

    def __init__(self, inputs: NamingInputs) -> None:
        self.inputs, self.subjects = inputs, read_subjects()
        self.phrases = Phrases(inputs.titles, inputs.shows)
        title_count = len(inputs.titles)
        words = ([word.casefold() for word in words_of(title)] for title in inputs.titles)
        self.title_subjects = find_title_subjects(inputs.labels, words, inputs.language)
        self.subject_shares = np.maximum(self.title_subjects.sum(axis=0) / max(title_count, 1), 1e-9)
        self.label_counts = Counter(label for labels in inputs.labels for label in set(labels))
        self._subjects_by_channel: dict[str, np.ndarray] = {}
        self.cosines = np.zeros((title_count, len(self.subjects)), dtype=np.float32)
        blocks = row_blocks(title_count)
        encoded_count = sum(int(self._sentence_vectors(block).any(axis=1).sum()) for block in blocks)
        self.uses_cosines = inputs.encode is not None and encoded_count > 0
        if self.uses_cosines:
            vector_sum = sum(self._sentence_vectors(block).sum(axis=0) for block in blocks)
            self.mean_sentence_vector = vector_sum / encoded_count
            subject_vectors = self._encode([subject.name(inputs.language) for subject in self.subjects])
            for block in blocks:
                self.cosines[block] = self._centred_vectors(block) @ subject_vectors.T
        self.votes = np.concatenate([self._find_votes(self.cosines[block]) for block in blocks])

    def _sentence_vectors(self, rows: Any) -> Float32[np.ndarray, "rows features"]:
        """Returns the sentence vectors of some titles; an empty array without a sentence encoder."""
        vectors = self.inputs.sentence_vectors
        return np.asarray(np.zeros((0, 0)) if vectors is None else vectors[rows], dtype=np.float32)

    def _centred_vectors(self, rows: Any) -> Float32[np.ndarray, "rows features"]:
        """Returns the sentence vectors of some titles minus the mean over all titles, with unit norm."""
        vectors = self._sentence_vectors(rows)
        return unit_rows(np.where(vectors.any(axis=1, keepdims=True), vectors - self.mean_sentence_vector, 0))

    def _find_votes(self, cosines: Float32[np.ndarray, "rows subjects"]) -> Bool[np.ndarray, "rows subjects"]:
        """Returns a mask of the subjects for which each title votes, from the cosines of titles and subjects.

        Among the subjects that have the same broader subject, a title votes for the subject with the largest
        cosine if this cosine is at least MIN_VOTE_COSINE.
        """
        votes = np.zeros(cosines.shape, dtype=bool)
        broader_keys = [subject.broader_key for subject in self.subjects]
        groups = ["Fiction" if key in FICTION else key for key in broader_keys]
        for group in set(groups):
            columns = np.flatnonzero([name == group for name in groups])
            votes[np.arange(len(cosines)), columns[cosines[:, columns].argmax(axis=1)]] = True
        return votes & (cosines >= MIN_VOTE_COSINE)

    def _encode(self, texts: Sequence[str]) -> Float[np.ndarray, "texts features"]:
        """Returns centred sentence vectors of the texts, with unit norm."""
        assert self.inputs.encode is not None
        vectors = np.asarray(self.inputs.encode(texts), dtype=np.float32)
        return unit_rows(vectors - self.mean_sentence_vector)

    def find_subjects(
        self, members: Int[np.ndarray, " members"], threshold_factor: float = 1.0
    ) -> list[Candidate]:
        """Returns the subjects that enough titles of a cluster contain or vote for.

        Args:
            members: Row numbers of the cluster's titles.
            threshold_factor: Multiplies all thresholds; a factor below 1 gives more subjects.
        """
        has_subject, votes = self.title_subjects[members], self.votes[members]
        shares, cosines = has_subject.mean(axis=0), self.cosines[members].mean(axis=0)
        lifts = shares / self.subject_shares
        has_broader = np.array([subject.broader_key != "" for subject in self.subjects])
        broader_cosines = has_broader * cosines[broader_indices()]
        by_votes = votes.sum(axis=0) >= max(threshold_factor * VOTE_SHARE * len(members) + 1, MIN_VOTES)
        by_votes &= cosines >= threshold_factor * MIN_MEAN_COSINE
        by_votes &= cosines >= threshold_factor * BROADER_RATIO * broader_cosines
        by_category = (shares >= threshold_factor * SUBJECT_SHARE) & (lifts > 1)
        by_category &= cosines >= MIN_MEAN_COSINE / 3 * self.uses_cosines
        scores = shares * np.log(np.maximum(lifts, 1)) + COSINE_WEIGHT * np.maximum(cosines, 0)
        candidates = []
        for index in np.flatnonzero(by_votes | (shares >= MAJORITY) | by_category).tolist():
            subject = self.subjects[index]
            candidates.append(
                Candidate(
                    text=subject.name(self.inputs.language),
                    rows=frozenset(members[has_subject[:, index]].tolist()),
                    score=round(float(scores[index]), 6),
                    share=float(shares[index]),
                    key=subject.key,
                    broader_key=subject.broader_key,
                    cosine=float(cosines[index]) if by_votes[index] else 0.0,
                )
            )
        return candidates

    def find_phrases(self, members: Int[np.ndarray, " members"]) -> list[Candidate]:
        """Returns the phrases that are frequent in a cluster and in several shows, but rare in the guide."""
        min_count = max(MIN_SHOWS, math.ceil(PHRASE_SHARE * len(members)))
        scored_phrases = []
        for phrase, rows in self.phrases.find_shared(members.tolist(), min_count).items():
            share = len(rows) / len(members)
            lift = share * len(self.inputs.titles) / self.phrases.count(phrase)
            if lift >= MIN_LIFT and (len(phrase) > 1 or share >= WORD_SHARE):
                score = share * math.log(lift) * (1 if len(phrase) > 1 else WORD_WEIGHT)
                scored_phrases.append((-round(score, 9), phrase, rows))
        best_phrases = sorted(scored_phrases)[:MAX_PHRASES]
        texts = [self.phrases.most_common_spelling(phrase, rows) for _, phrase, rows in best_phrases]
        cosine_scores = [0.0] * len(best_phrases)
        if best_phrases and self.uses_cosines:
            cosines = self._encode(texts) @ self._centred_vectors(members).mean(axis=0)
            cosine_scores = [COSINE_WEIGHT * float(cosine) for cosine in cosines]
        return [
            Candidate(
                text, frozenset(rows), round(cosine_score - negative_score, 6), len(rows) / len(members)
            )
            for text, (negative_score, _, rows), cosine_score in zip(
                texts, best_phrases, cosine_scores, strict=True
            )
        ]

    def find_channels(self, members: Int[np.ndarray, " members"]) -> list[tuple[str, float]]:
        """Returns names of channels, or prefixes of names, with the share of the cluster's titles on each.

        The channel with the most titles is first. A channel is omitted if nearly all of its titles also air
        on a channel before it.
        """
        cluster_subjects = self.title_subjects[members].mean(axis=0) >= SUBJECT_SHARE
        cluster_subjects |= self.cosines[members].mean(axis=0) >= MIN_MEAN_COSINE / 2
        titles_on: dict[str, set[int]] = {}  # rows of the titles that air on a channel, by prefix of its name
        rows: list[int] = members.tolist()
        for row in rows:
            for channel in self.inputs.channels[row]:
                subjects = self._channel_subjects(channel)
                # A channel named after another subject is no candidate: NBC Sports for a cluster of news.
                if not subjects.any() or (subjects & cluster_subjects).any():
                    for prefix in _channel_prefixes(channel):
                        titles_on.setdefault(prefix, set()).add(row)
        names = sorted(titles_on, key=lambda name: (-len(titles_on[name]), name))
        channels = []
        while names and len(titles_on[names[0]]) >= CHANNEL_SHARE * len(members):
            titles = titles_on[names[0]]
            similar_names = [name for name in names if len(titles_on[name] & titles) >= OVERLAP * len(titles)]
            channels.append((_common_name(similar_names), len(titles) / len(members)))
            names = [name for name in names if len(titles_on[name] & titles) < OVERLAP * len(titles_on[name])]
        return channels

    def _channel_subjects(self, channel: str) -> Bool[np.ndarray, " subjects"]:
        """Returns a mask of the subjects that the name of a channel contains."""
        if channel not in self._subjects_by_channel:
            words = [word.casefold() for word in words_of(channel)]
            subjects = find_title_subjects([words], [words], self.inputs.language)[0]
            self._subjects_by_channel[channel] = subjects
        return self._subjects_by_channel[channel]


def _common_name(names: Sequence[str]) -> str:
    """Returns a common name of several channels, such as SBS for SBS, SBS Perth and SBS Sydney.

    This is the longest prefix of most of the names or, if they have no common prefix, the shortest name.
    """
    complete_names = [name for name in names if not any(longer.startswith(f"{name} ") for longer in names)]
    longer_counts = {name: sum(full.startswith(f"{name} ") for full in complete_names) for name in names}
    max_count = max(longer_counts.values())
    if max_count > 1:
        return max((name for name in names if longer_counts[name] == max_count), key=len)
    return min(complete_names, key=lambda name: (len(name), name))


@functools.cache
def _channel_prefixes(channel: str) -> tuple[str, ...]:
    """Returns all prefixes of the name of a channel without its picture quality and region.

    For "3ABN Latino HD", these are "3ABN" and "3ABN Latino".
    """
    words = (_CHANNEL_SUFFIXES.sub("", channel).strip(" -") or channel).split()
    can_end = [len(word) > 1 and not word.islower() for word in words[:-1]] + [True]
    prefixes = [" ".join(words[: index + 1]) for index in range(len(words)) if can_end[index]]
    return tuple(prefix for prefix in prefixes if len(prefix) > 2 and prefix.casefold() not in _GENERIC_WORDS)
