"""Makes a list of recommended programmes for each viewer, with reasons, from scores of their titles.

Programmes that a viewer has seen and shows that a viewer dislikes are omitted.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from storage.episodes.numbers import fold_sub_title
from tasks.recommend import Counterfactual, Likes, Titles, diversify, find_counterfactual
from tasks.recommend.lists import FittedRecommender, top_indices
from tasks.tonight.programmes import Programme, Show
from tasks.tonight.settings import TonightSettings

MIN_REASON_SHARE = 0.02  # minimum share of the score for a reason to be shown
VIEWERS_PER_BATCH = 1000  # viewers scored at once: 20 MB of scores with 5,000 shows


@dataclass(frozen=True, kw_only=True)
class RecommendationReason:
    """Reason for a recommendation: a title that the viewer liked or disliked."""

    title: str
    share: float  # share of the score, 0 to 1
    liked: bool  # False: disliked


@dataclass(frozen=True, kw_only=True)
class Credit:
    """Person who takes part in a programme."""

    role: str  # actor, director, guest or presenter
    name: str


@dataclass(frozen=True, kw_only=True)
class LikedPerson:
    """Person of a recommended programme who also takes part in a title that the viewer likes."""

    name: str
    role: str  # role in the recommended programme
    title: str  # title that the viewer likes


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """Programme on a viewer's list. The icon and the people are added later (people.py)."""

    viewer: str  # salted hash of the viewer
    rank: int  # position on the list, from 1
    score: float  # higher is better
    programme: Programme
    why: tuple[RecommendationReason, ...]  # reasons, largest share first, at most settings.reasons
    credits: tuple[Credit, ...] = ()  # people of the programme
    icon: str = ""  # URL of a picture; "" if there is none
    people: tuple[LikedPerson, ...] = ()  # people of the programme whom the viewer knows from liked titles
    counterfactual: str = ""  # sentence that says which change of likes would remove the programme


class Evening:
    """Upcoming shows of an evening and the likes of viewers, from which lists are made.

    Args:
        shows: Upcoming shows with their programmes.
        opinions: Table of likes and dislikes, from ``read_likes``.
        seen: Table of episodes that viewers have seen, from ``read_likes``.
        titles: Data of the titles in ``titles_to_rank(shows, opinions)``, in that order.
        settings: Settings of the ranking.
    """

    def __init__(
        self,
        shows: Sequence[Show],
        opinions: pa.Table,
        seen: pa.Table,
        titles: Titles,
        settings: TonightSettings,
    ) -> None:
        names = titles_to_rank(shows, opinions)
        row_by_key = {key: row for row, key in enumerate(names)}
        self.shows, self.settings, self.names = shows, settings, list(names.values())
        self.show_keys = list(names)
        codes = opinions["viewer"].combine_chunks().dictionary_encode()
        self.viewers: list[str] = codes.dictionary.to_pylist()
        self.rows = np.array([row_by_key[show.show_key] for show in shows], dtype=np.int32)  # rows in titles
        liked = np.array([row_by_key[key] for key in opinions["show_key"].to_pylist()], dtype=np.int32)
        # to_pylist: to_numpy would import pandas (tasks/tonight/vectors.py)
        values = np.array(opinions["value"].to_pylist(), dtype=np.float32)
        times = np.array(opinions["time"].to_pylist(), dtype="datetime64[us]").astype(np.int64) / 1e6
        viewers = np.array(codes.indices.to_pylist(), dtype=np.int32)
        self.likes = Likes(viewers, liked, values, times, len(self.viewers))
        self.titles = titles
        self.fitted = settings.recommender.fit(self.likes, titles)
        self._row_of = {
            programme: row_by_key[show.show_key] for show in shows for programme in show.programmes
        }
        index_of_show = {show.show_key: index for index, show in enumerate(shows)}
        self.seen: dict[str, dict[int, list[tuple[str, str]]]] = {}
        for row in seen.to_pylist():
            if (index := index_of_show.get(row["show_key"])) is not None:
                episodes = self.seen.setdefault(row["viewer"], {}).setdefault(index, [])
                episodes.append((row["episode"], fold_sub_title(row["sub_title"])))
        self._disliked: dict[int, set[int]] = {}
        index_of_row = {row: index for index, row in enumerate(self.rows.tolist())}
        for position in np.flatnonzero(values < 0).tolist():
            if (index := index_of_row.get(int(liked[position]))) is not None:
                self._disliked.setdefault(int(viewers[position]), set()).add(index)

    def show_key(self, programme: Programme) -> str:
        """Returns the show key (normalized title) of a programme of the evening."""
        return self.show_keys[self._row_of[programme]]

    def liked_titles(self, viewer: str) -> dict[str, str]:
        """Returns the titles that a viewer (a salted hash) likes, by show key, the most liked first."""
        likes = self.likes.take(np.flatnonzero(self.likes.viewers == self.viewers.index(viewer)))
        pairs = sorted(zip((-likes.values).tolist(), likes.titles.tolist(), strict=True))
        return {self.show_keys[row]: self.names[row] for value, row in pairs if value < 0}

    def recommend(self, viewers: Sequence[str]) -> Iterator[list[Recommendation]]:
        """Yields the list of recommendations for each viewer, best first; ``viewers`` are salted hashes."""
        code_of = {viewer: code for code, viewer in enumerate(self.viewers)}
        batches = [
            viewers[begin : begin + VIEWERS_PER_BATCH] for begin in range(0, len(viewers), VIEWERS_PER_BATCH)
        ]
        codes = [np.array([code_of[viewer] for viewer in part], dtype=np.int32) for part in batches]
        with ThreadPoolExecutor(1) as executor:  # scoring mostly releases the GIL, building lists does not
            scores = [executor.submit(self.fitted.scores, part, self.rows) for part in codes[:1]]
            for batch in range(len(batches)):
                batch_scores = scores.pop().result()
                scores += [
                    executor.submit(self.fitted.scores, part, self.rows)
                    for part in codes[batch + 1 : batch + 2]
                ]
                for code, viewer_scores in zip(codes[batch].tolist(), batch_scores, strict=True):
                    yield self._recommend_shows(code, viewer_scores)

    def add_counterfactuals(self, recommendations: Sequence[Recommendation]) -> list[Recommendation]:
        """Adds to each recommendation of a viewer which change of likes would remove the programme."""
        if not recommendations:
            return []
        code = self.viewers.index(recommendations[0].viewer)
        viewer_likes = self.likes.take(np.flatnonzero(self.likes.viewers == code))
        likes = dict(zip(viewer_likes.titles.tolist(), viewer_likes.values.tolist(), strict=True))
        viewers = np.array([code], dtype=np.int32)

        def listed(fitted: FittedRecommender) -> np.ndarray:
            """Returns the rows of the titles on the viewer's list according to a recommender."""
            scores = fitted.scores(viewers, self.rows)[0]
            return self.rows[[index for index, _ in self._choose(fitted, code, scores)]]

        explained = []
        for recommendation in recommendations:
            row = self._row_of[recommendation.programme]
            sentence = self._format_counterfactual(find_counterfactual(self.fitted, code, likes, row, listed))
            explained.append(dataclasses.replace(recommendation, counterfactual=sentence))
        return explained

    def _format_counterfactual(self, counterfactual: Counterfactual) -> str:
        """Returns a sentence about a change of likes, or "" if there is no such change."""
        titles = [f"“{self.names[row]}”" for row in counterfactual.without]
        if titles:
            joined_titles = f"{', '.join(titles[:-1])} and {titles[-1]}" if titles[1:] else titles[0]
            return f"Without {joined_titles} it would not be listed."
        if counterfactual.disliked is not None:
            return f"If you disliked “{self.names[counterfactual.disliked]}” it would not be listed."
        return ""

    def _recommend_shows(self, code: int, scores: np.ndarray) -> list[Recommendation]:
        """Returns the list of recommendations of the viewer ``code``, from the scores of all shows."""
        return [
            Recommendation(
                viewer=self.viewers[code],
                rank=rank,
                score=round(float(scores[index]), 4),
                programme=programme,
                why=self._explain_show(code, index),
            )
            for rank, (index, programme) in enumerate(self._choose(self.fitted, code, scores), 1)
        ]

    def _choose(
        self, fitted: FittedRecommender, code: int, scores: np.ndarray
    ) -> list[tuple[int, Programme]]:
        """Chooses the shows of a list. Returns their indices and the first unseen programme of each."""
        seen, disliked = self.seen.get(self.viewers[code], {}), self._disliked.get(code, ())
        candidates: list[tuple[int, Programme]] = []
        for index in top_indices(scores, self.settings.pool + len(seen) + len(disliked)).tolist():
            programmes, seen_episodes = self.shows[index].programmes, seen.get(index)
            programme = (
                next((programme for programme in programmes if not programme.was_seen(seen_episodes)), None)
                if seen_episodes
                else programmes[0]
            )
            if programme is not None and index not in disliked:
                candidates.append((index, programme))
        indices = np.array([index for index, _ in candidates], dtype=np.int64)
        _, shares = fitted.shares(code, self.rows[indices])
        selection = diversify(scores[indices], shares, self.settings.count, self.settings.trade_off)
        return [candidates[position] for position in selection.tolist()]

    def _explain_show(self, code: int, index: int) -> tuple[RecommendationReason, ...]:
        """Returns the reasons why a show is recommended to a viewer."""
        reasons = self.fitted.reasons_for(code, int(self.rows[index]))[: self.settings.reasons]
        return tuple(
            RecommendationReason(
                title=self.names[reason.title], share=round(reason.share, 4), liked=reason.liked
            )
            for reason in reasons
            if reason.share >= MIN_REASON_SHARE
        )


def titles_to_rank(shows: Sequence[Show], opinions: pa.Table) -> dict[str, str]:
    """Returns the titles of upcoming shows and of liked or disliked shows, by show key."""
    titles_by_show = {show.show_key: show.programmes[0].title for show in shows}
    liked = dict(zip(opinions["show_key"].to_pylist(), opinions["title"].to_pylist(), strict=True))
    return titles_by_show | {key: title for key, title in liked.items() if key not in titles_by_show}
