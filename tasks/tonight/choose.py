"""Lists for viewers: programmes scored, without what they have seen or dislike, diverse, with reasons."""

import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from storage.episodes.numbers import fold_sub_title
from tasks.recommend import Change, Likes, Titles, diversify, what_would_change
from tasks.recommend.lists import Fitted, best_places
from tasks.tonight.programmes import Programme, Show
from tasks.tonight.settings import TonightSettings

LEAST = 0.02  # a smaller share is no reason
VIEWERS = 1000  # scored at once: with 5,000 shows 20 MB


@dataclass(frozen=True, kw_only=True)
class Why:
    """A title that a viewer liked or disliked, and its share of what decided."""

    title: str
    share: float
    liked: bool


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A programme for a viewer."""

    viewer: str  # hash
    rank: int  # from 1
    score: float
    programme: Programme
    why: tuple[Why, ...]  # largest share first, at most settings.reasons
    change: str = ""  # what would change it, as a sentence


class Evening:
    """Shows of an evening and the likes of viewers, over one table of titles.

    Args:
        shows: Coming shows.
        opinions: Of ``read_likes``.
        seen: Of ``read_likes``.
        titles: What is known of ``wanted(shows, opinions)``, in that order.
        settings: How they are ranked.
    """

    def __init__(
        self,
        shows: Sequence[Show],
        opinions: pa.Table,
        seen: pa.Table,
        titles: Titles,
        settings: TonightSettings,
    ) -> None:
        names = wanted(shows, opinions)
        row_of = {key: row for row, key in enumerate(names)}
        self.shows, self.settings, self.names = shows, settings, list(names.values())
        codes = opinions["viewer"].combine_chunks().dictionary_encode()
        self.viewers: list[str] = codes.dictionary.to_pylist()
        self.rows = np.array([row_of[show.show_key] for show in shows], dtype=np.int32)  # of titles
        liked = np.array([row_of[key] for key in opinions["show_key"].to_pylist()], dtype=np.int32)
        # to_pylist: to_numpy would import pandas (tasks/tonight/vectors.py)
        values = np.array(opinions["value"].to_pylist(), dtype=np.float32)
        times = np.array(opinions["time"].to_pylist(), dtype="datetime64[us]").astype(np.int64) / 1e6
        viewers = np.array(codes.indices.to_pylist(), dtype=np.int32)
        self.likes = Likes(viewers, liked, values, times, len(self.viewers))
        self.titles = titles
        self.fitted = settings.recommender.fit(self.likes, titles)
        self._row_of = {one: row_of[show.show_key] for show in shows for one in show.programmes}
        place_of = {show.show_key: place for place, show in enumerate(shows)}
        self.seen: dict[str, dict[int, list[tuple[str, str]]]] = {}
        for row in seen.to_pylist():
            if (place := place_of.get(row["show_key"])) is not None:
                own = self.seen.setdefault(row["viewer"], {}).setdefault(place, [])
                own.append((row["episode"], fold_sub_title(row["sub_title"])))
        self._disliked: dict[int, set[int]] = {}
        place_of_row = {row: place for place, row in enumerate(self.rows.tolist())}
        for at in np.flatnonzero(values < 0).tolist():
            if (place := place_of_row.get(int(liked[at]))) is not None:
                self._disliked.setdefault(int(viewers[at]), set()).add(place)

    def recommend(self, viewers: Sequence[str]) -> Iterator[list[Recommendation]]:
        """A list for each viewer (hashes of ``self.viewers``), best first."""
        code_of = {viewer: code for code, viewer in enumerate(self.viewers)}
        parts = [viewers[begin : begin + VIEWERS] for begin in range(0, len(viewers), VIEWERS)]
        codes = [np.array([code_of[viewer] for viewer in part], dtype=np.int32) for part in parts]
        with ThreadPoolExecutor(1) as ahead:  # scores need the interpreter little, lists all the time
            scores = [ahead.submit(self.fitted.scores, own, self.rows) for own in codes[:1]]
            for place in range(len(parts)):
                found = scores.pop().result()
                scores += [
                    ahead.submit(self.fitted.scores, own, self.rows) for own in codes[place + 1 : place + 2]
                ]
                for code, own in zip(codes[place].tolist(), found, strict=True):
                    yield self._list(code, own)

    def changes(self, found: Sequence[Recommendation]) -> list[Recommendation]:
        """One viewer's list with what would take each programme off it."""
        if not found:
            return []
        code = self.viewers.index(found[0].viewer)
        own = self.likes.take(np.flatnonzero(self.likes.viewers == code))
        likes = dict(zip(own.titles.tolist(), own.values.tolist(), strict=True))
        viewers = np.array([code], dtype=np.int32)

        def listed(fitted: Fitted) -> np.ndarray:
            scores = fitted.scores(viewers, self.rows)[0]
            return self.rows[[place for place, _ in self._choose(fitted, code, scores)]]

        told = []
        for one in found:
            row = self._row_of[one.programme]
            change = what_would_change(self.fitted, code, likes, row, listed)
            told.append(dataclasses.replace(one, change=self._sentence(change)))
        return told

    def _sentence(self, change: Change) -> str:
        without, disliked = [f"“{self.names[row]}”" for row in change.without], change.disliked
        if without:
            several = f"{', '.join(without[:-1])} and {without[-1]}" if without[1:] else without[0]
            return f"Without {several} it would not be listed."
        return "" if disliked is None else f"If you disliked “{self.names[disliked]}” it would not be listed."

    def _list(self, code: int, scores: np.ndarray) -> list[Recommendation]:
        return [
            Recommendation(
                viewer=self.viewers[code],
                rank=rank,
                score=round(float(scores[place]), 4),
                programme=programme,
                why=self._why(code, place),
            )
            for rank, (place, programme) in enumerate(self._choose(self.fitted, code, scores), 1)
        ]

    def _choose(self, fitted: Fitted, code: int, scores: np.ndarray) -> list[tuple[int, Programme]]:
        """Shows of a viewer's list with the programme of each that the viewer has not seen."""
        seen, disliked = self.seen.get(self.viewers[code], {}), self._disliked.get(code, ())
        fresh: list[tuple[int, Programme]] = []
        for place in best_places(scores, self.settings.pool + len(seen) + len(disliked)).tolist():
            programmes, own = self.shows[place].programmes, seen.get(place)
            programme = (
                next((one for one in programmes if not one.seen_in(own)), None) if own else programmes[0]
            )
            if programme is not None and place not in disliked:
                fresh.append((place, programme))
        places = np.array([place for place, _ in fresh], dtype=np.int64)
        _, shares = fitted.shares(code, self.rows[places])
        chosen = diversify(scores[places], shares, self.settings.count, self.settings.trade_off)
        return [fresh[at] for at in chosen.tolist()]

    def _why(self, code: int, place: int) -> tuple[Why, ...]:
        reasons = self.fitted.why(code, int(self.rows[place]))[: self.settings.reasons]
        return tuple(
            Why(title=self.names[one.title], share=round(one.share, 4), liked=one.liked)
            for one in reasons
            if one.share >= LEAST
        )


def wanted(shows: Sequence[Show], opinions: pa.Table) -> dict[str, str]:
    """Show key to title of what is coming and of what was liked, without repeats."""
    coming = {show.show_key: show.programmes[0].title for show in shows}
    liked = dict(zip(opinions["show_key"].to_pylist(), opinions["title"].to_pylist(), strict=True))
    return coming | {key: title for key, title in liked.items() if key not in coming}
