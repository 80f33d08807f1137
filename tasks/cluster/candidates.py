"""What parts of a cluster's name are taken from: subjects, phrases of the titles, channels.

A subject or phrase t of cluster c scores

    share(t, c) · log(share(t, c) / share(t)) + MEANING · cosine(t, c)

share is the part of the titles that hold it; the cosine, where there is a sentence encoder, is the mean over
the cluster's titles of that of their sentence vectors with the candidate's, all less the mean over the
guide's titles: without that everything is near everything. What few titles hold is a candidate if enough
titles mean it: each title names the subject that it is nearest to, of those with one broader subject, and of
titles that truly are about a subject some three of ten name it, of others three of a hundred. Channels serve
since titles that air alike often share one.
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
from tasks.cluster.subjects import FICTION, held_subjects, read_subjects

Encode = Callable[[Sequence[str]], np.ndarray]
MAJORITY = 0.5  # of the titles, for the category and for the general part
TELLING_SHARE = 0.3  # of the titles, for a subject by their categories and words, if it is rarer elsewhere
LEAST_TITLES = 3  # of different shows, that hold a phrase
PHRASE_SHARE, WORD_SHARE = 0.25, 0.6  # of the titles, for a phrase of several words, and of one
PHRASES_KEPT = 8
LEAST_LIFT = 3.0  # of a phrase
WORD_WEIGHT = 0.5  # of a phrase of one word
MEANING = 4.0  # weight of a cosine beside share · log(lift)
NEAR = 0.15  # cosine from which a title means a subject
MEANT_SHARE, MEANT_TITLES = 0.2, 3  # of the titles, and one more, and no fewer, that mean a subject
LEAST_COSINE = 0.06  # mean over the titles, of a subject by meaning; of one by category a third of it
BEYOND = 1.2  # times the broader subject's cosine, of a subject by meaning
VERY_NEAR = 0.2  # cosine of a subject that is the general part by meaning alone
CHANNEL_SHARE = 0.1  # of the titles, for a channel to be a candidate
ALIKE = 0.8  # of the titles of a channel: another with so many of them tells nothing new
LONG = frozenset(f"duration:{minutes}" for minutes in (90, 120, 180))
EPISODES = "manner:episodes:2"  # most airings have an episode's number
_ENDS = "HD|HDTV|SD|UHD|4K|East|Eastern|West|Western|Pacific|Feed|US|USA|UK"
_QUALITY = re.compile(rf"\s*\([^)]*\)|[\s-]+(?:{_ENDS})\b|\+\d\b", re.IGNORECASE)
_NO_NAMES = frozenset(["the", "das", "die", "der", "les", "las", "los", "channel", "canal", "kanal", "radio"])


@dataclass(frozen=True, kw_only=True)
class NamedTitles:
    """What names are made of. Row i of everything is title i; without ``encode`` meaning is left out."""

    titles: Sequence[str]
    shows: Sequence[str]  # show keys
    labels: Sequence[Sequence[str]]
    channels: Sequence[Sequence[str]]  # display names
    films: np.ndarray  # bool (titles,), long single programmes
    language: str = "en"  # ISO 639-1
    sentences: np.ndarray | None = None  # (titles, features), unit norm or zero
    encode: Encode | None = None  # texts to vectors like these


@dataclass(frozen=True)
class Candidate:
    """A candidate for a part of a name."""

    text: str
    rows: frozenset[int]  # titles that hold it
    score: float
    share: float  # part of the cluster's titles that hold it
    key: str = ""  # of a subject
    general: str = ""  # the broader subject's key
    near: float = 0.0  # its cosine, if that alone makes it a candidate


def find_films(contexts: Sequence[Sequence[str]]) -> Bool[np.ndarray, " titles"]:
    """Which titles air as long single programmes, by the tokens of how they air."""
    return np.array([bool(LONG & set(own)) and EPISODES not in own for own in contexts], dtype=bool)


def commonest_language(codes: Sequence[str | None]) -> str:
    """The two letters of the commonest language code; English where there is none."""
    counts = Counter(code[:2].casefold() for code in codes if code)
    return min(counts, key=lambda code: (-counts[code], code), default="en")


class Candidates:
    """Candidates for the names of clusters of some titles; what they are counted from is counted once."""

    def __init__(self, about: NamedTitles) -> None:
        self.about, self.subjects = about, read_subjects()
        self.phrases = Phrases(about.titles, about.shows)
        titles = len(about.titles)
        words = ([word.casefold() for word in words_of(title)] for title in about.titles)
        self.held = held_subjects(about.labels, words, about.language)
        self.everywhere = np.maximum(self.held.sum(axis=0) / max(titles, 1), 1e-9)
        self.carried = Counter(label for own in about.labels for label in set(own))
        places = {one.key: place for place, one in enumerate(self.subjects)}
        self.broader = [places.get(one.general, place) for place, one in enumerate(self.subjects)]
        self.channels: dict[str, np.ndarray] = {}
        self.near = np.zeros((titles, len(self.subjects)), dtype=np.float32)
        blocks = row_blocks(titles)
        known = sum(int(self._sentences(own).any(axis=1).sum()) for own in blocks)
        self.meaning = about.encode is not None and known > 0
        if self.meaning:
            self.mean = sum(self._sentences(own).sum(axis=0) for own in blocks) / known
            subjects = self._encode([one.name(about.language) for one in self.subjects])
            for own in blocks:
                self.near[own] = self._centred(own) @ subjects.T
        self.meant = np.concatenate([self._meant(self.near[own]) for own in blocks])

    def _sentences(self, rows: Any) -> Float32[np.ndarray, "some features"]:
        found = self.about.sentences
        return np.asarray(np.zeros((0, 0)) if found is None else found[rows], dtype=np.float32)

    def _centred(self, rows: Any) -> Float32[np.ndarray, "some features"]:
        """Sentence vectors of some titles, less the mean over all."""
        sentences = self._sentences(rows)
        return unit_rows(np.where(sentences.any(axis=1, keepdims=True), sentences - self.mean, 0))

    def _meant(self, near: Float32[np.ndarray, "some subjects"]) -> Bool[np.ndarray, "some subjects"]:
        """The subject that each title is nearest to, of those with one broader subject, if near enough."""
        meant = np.zeros(near.shape, dtype=bool)
        groups = ["Fiction" if one.general in FICTION else one.general for one in self.subjects]
        for group in set(groups):
            own = np.flatnonzero([one == group for one in groups])
            meant[np.arange(len(near)), own[near[:, own].argmax(axis=1)]] = True
        return meant & (near >= NEAR)

    def _encode(self, texts: Sequence[str]) -> Float[np.ndarray, "texts features"]:
        assert self.about.encode is not None
        return unit_rows(np.asarray(self.about.encode(texts), dtype=np.float32) - self.mean)

    def find_subjects(self, own: Int[np.ndarray, " members"], enough: float = 1.0) -> list[Candidate]:
        """Subjects of some titles: held or meant by enough of them, times ``enough``."""
        held, meant = self.held[own], self.meant[own]
        shares, near = held.mean(axis=0), self.near[own].mean(axis=0)
        lifts = shares / self.everywhere
        broader = np.array([one.general != "" for one in self.subjects]) * near[self.broader]
        by_meaning = meant.sum(axis=0) >= max(enough * MEANT_SHARE * len(own) + 1, MEANT_TITLES)
        by_meaning &= (near >= enough * LEAST_COSINE) & (near >= enough * BEYOND * broader)
        told = (shares >= enough * TELLING_SHARE) & (lifts > 1) & (near >= LEAST_COSINE / 3 * self.meaning)
        scores = shares * np.log(np.maximum(lifts, 1)) + MEANING * np.maximum(near, 0)
        chosen = by_meaning | (shares >= MAJORITY) | told
        found = []
        for place in np.flatnonzero(chosen).tolist():
            subject, rows = self.subjects[place], frozenset(own[held[:, place]].tolist())
            numbers = round(float(scores[place]), 6), float(shares[place])
            kind = subject.key, subject.general, float(near[place]) if by_meaning[place] else 0.0
            found.append(Candidate(subject.name(self.about.language), rows, *numbers, *kind))
        return found

    def find_phrases(self, own: Int[np.ndarray, " members"]) -> list[Candidate]:
        """Phrases that several shows among some titles hold, and few others."""
        least = max(LEAST_TITLES, math.ceil(PHRASE_SHARE * len(own)))
        found = []
        for phrase, rows in self.phrases.shared(own.tolist(), least).items():
            share = len(rows) / len(own)
            lift = share * len(self.about.titles) / self.phrases.count(phrase)
            if lift >= LEAST_LIFT and (len(phrase) > 1 or share >= WORD_SHARE):
                score = share * math.log(lift) * (1 if len(phrase) > 1 else WORD_WEIGHT)
                found.append((-round(score, 9), phrase, rows))
        best = sorted(found)[:PHRASES_KEPT]
        texts = [self.phrases.written(phrase, rows) for _, phrase, rows in best]
        near = np.zeros(len(best))
        if best and self.meaning:
            near = self._encode(texts) @ self._centred(own).mean(axis=0)
        held = [
            (frozenset(rows), round(MEANING * float(cosine) - loss, 6))
            for (loss, _, rows), cosine in zip(best, near, strict=True)
        ]
        return [
            Candidate(text, rows, score, len(rows) / len(own))
            for text, (rows, score) in zip(texts, held, strict=True)
        ]

    def find_channels(self, own: Int[np.ndarray, " members"]) -> list[tuple[str, float]]:
        """Channels, or what the names of several begin with, and the share of some titles that air there.

        The commonest first, then what adds titles to those before it.
        """
        said = self.held[own].mean(axis=0) >= TELLING_SHARE
        said |= self.near[own].mean(axis=0) >= LEAST_COSINE / 2
        votes: dict[str, set[int]] = {}
        rows: list[int] = own.tolist()
        for row in rows:
            for channel in self.about.channels[row]:
                about = self._about(channel)
                if not about.any() or (about & said).any():  # not NBC Sports over what is no sport
                    for start in _beginnings(channel):
                        votes.setdefault(start, set()).add(row)
        rest = sorted(votes, key=lambda name: (-len(votes[name]), name))
        told = []
        while rest and len(votes[rest[0]]) >= CHANNEL_SHARE * len(own):
            most = votes[rest[0]]
            alike = [name for name in rest if len(votes[name] & most) >= ALIKE * len(most)]
            told.append((_common_name(alike), len(most) / len(own)))
            rest = [name for name in rest if len(votes[name] & most) < ALIKE * len(votes[name])]
        return told

    def _about(self, channel: str) -> Bool[np.ndarray, " subjects"]:
        """The subjects that a channel's name says."""
        if channel not in self.channels:
            words = [word.casefold() for word in words_of(channel)]
            self.channels[channel] = held_subjects([words], [words], self.about.language)[0]
        return self.channels[channel]


def _common_name(alike: Sequence[str]) -> str:
    """The longest, or what several begin with: SBS of SBS, SBS Perth and SBS Sydney."""
    whole = [name for name in alike if not any(other.startswith(f"{name} ") for other in alike)]
    begun = {name: sum(other.startswith(f"{name} ") for other in whole) for name in alike}
    most = max(begun.values())
    if most > 1:
        return max((name for name in alike if begun[name] == most), key=len)
    return min(whole, key=lambda name: (len(name), name))


@functools.cache
def _beginnings(channel: str) -> tuple[str, ...]:
    """A channel's name without picture quality and region, and its first words: 3ABN Latino, 3ABN."""
    words = (_QUALITY.sub("", channel).strip(" -") or channel).split()
    sound = [len(word) > 1 and not word.islower() for word in words[:-1]] + [True]
    starts = [" ".join(words[: place + 1]) for place in range(len(words)) if sound[place]]
    return tuple(start for start in starts if len(start) > 2 and start.casefold() not in _NO_NAMES)
