"""Makes a list of recommended programmes for each viewer, with reasons, from the scores of titles.

Programmes that the viewer has seen, and shows that the viewer dislikes, are omitted.
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

MIN_REASON_SHARE = 0.02  # reasons with a smaller share of the score are not shown
VIEWERS_PER_BATCH = 1000  # viewers whose scores are computed at once; with 5,000 shows, scores take 20 MB


@dataclass(frozen=True, kw_only=True)
class RecommendationReason:
    """Reason for a recommendation: a title that the viewer liked or disliked."""

    title: str
    share: float  # its share of the score, 0 to 1
    liked: bool  # whether the viewer liked it; False: disliked


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
    """Programme on a viewer's list. Credits, icon and people are added later (people.py)."""

    viewer: str  # salted hash of the viewer
    rank: int  # position on the list, from 1
    score: float  # higher is better
    programme: Programme
    why: tuple[RecommendationReason, ...]  # reasons, largest share first, at most settings.reasons
    credits: tuple[Credit, ...] = ()  # people of the programme
    icon: str = ""  # URL of a picture; "" if there is none
    people: tuple[LikedPerson, ...] = ()  # people of the programme whom the viewer knows from liked titles
    counterfactual: str = ""  # sentence that says which change of likes would remove it from the list


class Evening:
    """Upcoming shows of an evening and the likes of viewers, from which lists are made.

    Args:
        shows: Upcoming shows with their programmes.
        opinions: Table of likes and dislikes, from ``read_likes``.
        seen: Table of the episodes that viewers have seen, from ``read_likes``.
        titles: Data of the titles that ``titles_to_rank(shows, opinions)`` returns, in this order.
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
        titles_by_show = titles_to_rank(shows, opinions)
        row_by_key = {key: row for row, key in enumerate(titles_by_show)}
        self.shows, self.settings, self.titles = shows, settings, titles
        # Show keys and titles by row.
        self.show_keys, self.title_texts = list(titles_by_show), list(titles_by_show.values())
        viewer_codes = opinions["viewer"].combine_chunks().dictionary_encode()
        self.viewers: list[str] = viewer_codes.dictionary.to_pylist()
        self.show_rows = np.array([row_by_key[show.show_key] for show in shows], dtype=np.int32)
        rated_rows = np.array([row_by_key[key] for key in opinions["show_key"].to_pylist()], dtype=np.int32)
        # to_pylist: to_numpy would import pandas (tasks/tonight/vectors.py)
        values = np.array(opinions["value"].to_pylist(), dtype=np.float32)
        times = np.array(opinions["time"].to_pylist(), dtype="datetime64[us]").astype(np.int64) / 1e6
        viewers = np.array(viewer_codes.indices.to_pylist(), dtype=np.int32)
        self.likes = Likes(viewers, rated_rows, values, times, len(self.viewers))
        self.fitted = settings.recommender.fit(self.likes, titles)
        self._row_of = {
            programme.rows[0]: row_by_key[show.show_key] for show in shows for programme in show.programmes
        }
        index_of_show = {show.show_key: index for index, show in enumerate(shows)}
        # (episode, sub-title) pairs that a viewer has seen, by viewer and index of the show
        self._seen_episodes: dict[str, dict[int, list[tuple[str, str]]]] = {}
        for row in seen.to_pylist():
            if (index := index_of_show.get(row["show_key"])) is not None:
                episodes = self._seen_episodes.setdefault(row["viewer"], {}).setdefault(index, [])
                episodes.append((row["episode"], fold_sub_title(row["sub_title"])))
        self._disliked_shows: dict[int, set[int]] = {}  # indices of shows by number of the viewer
        index_of_row = {row: index for index, row in enumerate(self.show_rows.tolist())}
        for position in np.flatnonzero(values < 0).tolist():
            if (index := index_of_row.get(int(rated_rows[position]))) is not None:
                self._disliked_shows.setdefault(int(viewers[position]), set()).add(index)

    def show_key(self, programme: Programme) -> str:
        """Returns the show key (normalized title) of a programme of the evening."""
        return self.show_keys[self._row_of[programme.rows[0]]]

    def liked_titles(self, viewer: str) -> dict[str, str]:
        """Returns the titles that a viewer (a salted hash) likes, by show key, the most liked first."""
        likes = self.likes.take(np.flatnonzero(self.likes.viewers == self.viewers.index(viewer)))
        pairs = zip(likes.values.tolist(), likes.titles.tolist(), strict=True)
        sorted_pairs = sorted((-value, row) for value, row in pairs if value > 0)
        return {self.show_keys[row]: self.title_texts[row] for _, row in sorted_pairs}

    def recommend(self, viewers: Sequence[str]) -> Iterator[list[Recommendation]]:
        """Yields the list of recommendations for each viewer, best first; ``viewers`` are salted hashes."""
        number_of = {viewer: number for number, viewer in enumerate(self.viewers)}
        viewer_numbers = np.array([number_of[viewer] for viewer in viewers], dtype=np.int32)
        # While the lists of a batch are made, a thread computes the scores of the next batch without the GIL.
        with ThreadPoolExecutor(1) as executor:
            future = executor.submit(self.fitted.scores, viewer_numbers[:VIEWERS_PER_BATCH], self.show_rows)
            for begin in range(0, len(viewer_numbers), VIEWERS_PER_BATCH):
                end, batch_scores = begin + VIEWERS_PER_BATCH, future.result()
                if end < len(viewer_numbers):
                    next_batch = viewer_numbers[end : end + VIEWERS_PER_BATCH]
                    future = executor.submit(self.fitted.scores, next_batch, self.show_rows)
                for viewer_number, viewer_scores in zip(
                    viewer_numbers[begin:end].tolist(), batch_scores, strict=True
                ):
                    yield self._make_list(viewer_number, viewer_scores)

    def add_counterfactuals(self, recommendations: Sequence[Recommendation]) -> list[Recommendation]:
        """Adds counterfactuals (Recommendation.counterfactual) to the list of recommendations of a viewer."""
        if not recommendations:
            return []
        viewer_number = self.viewers.index(recommendations[0].viewer)
        viewer_likes = self.likes.take(np.flatnonzero(self.likes.viewers == viewer_number))
        likes = dict(zip(viewer_likes.titles.tolist(), viewer_likes.values.tolist(), strict=True))

        def list_titles(fitted: FittedRecommender) -> np.ndarray:
            """Returns the rows of the titles on the viewer's list according to a recommender."""
            scores = fitted.scores(np.array([viewer_number], dtype=np.int32), self.show_rows)[0]
            return self.show_rows[
                [index for index, _ in self._choose_programmes(fitted, viewer_number, scores)]
            ]

        explained = []
        for recommendation in recommendations:
            row = self._row_of[recommendation.programme.rows[0]]
            counterfactual = find_counterfactual(self.fitted, viewer_number, likes, row, list_titles)
            sentence = self._format_counterfactual(counterfactual)
            explained.append(dataclasses.replace(recommendation, counterfactual=sentence))
        return explained

    def _format_counterfactual(self, counterfactual: Counterfactual) -> str:
        """Returns a sentence about a change of likes, or "" if there is no such change."""
        titles = [f"“{self.title_texts[row]}”" for row in counterfactual.without]
        if titles:
            joined_titles = f"{', '.join(titles[:-1])} and {titles[-1]}" if titles[1:] else titles[0]
            return f"Without {joined_titles} it would not be listed."
        if counterfactual.disliked is not None:
            return f"If you disliked “{self.title_texts[counterfactual.disliked]}” it would not be listed."
        return ""

    def _make_list(self, viewer_number: int, scores: np.ndarray) -> list[Recommendation]:
        """Returns the list of recommendations of a viewer, from the scores of all shows."""
        return [
            Recommendation(
                viewer=self.viewers[viewer_number],
                rank=rank,
                score=round(float(scores[index]), 4),
                programme=programme,
                why=self._explain_show(viewer_number, index),
            )
            for rank, (index, programme) in enumerate(
                self._choose_programmes(self.fitted, viewer_number, scores), 1
            )
        ]

    def _choose_programmes(
        self, fitted: FittedRecommender, viewer_number: int, scores: np.ndarray
    ) -> list[tuple[int, Programme]]:
        """Chooses the shows for the list of a viewer.

        Returns the index of each show, and the first programme of the show that the viewer has not seen.
        """
        seen_episodes = self._seen_episodes.get(self.viewers[viewer_number], {})
        disliked_shows = self._disliked_shows.get(viewer_number, ())
        pool_size = self.settings.pool + len(seen_episodes) + len(disliked_shows)
        candidates: list[tuple[int, Programme]] = []
        for index in top_indices(scores, pool_size).tolist():
            programmes, seen = self.shows[index].programmes, seen_episodes.get(index)
            if seen:
                programmes = [programme for programme in programmes if not programme.was_seen(seen)]
            if programmes and index not in disliked_shows:
                candidates.append((index, programmes[0]))
        indices = np.array([index for index, _ in candidates], dtype=np.int64)
        _, shares = fitted.shares(viewer_number, self.show_rows[indices])
        positions = diversify(scores[indices], shares, self.settings.count, self.settings.trade_off)
        return [candidates[position] for position in positions.tolist()]

    def _explain_show(self, viewer_number: int, index: int) -> tuple[RecommendationReason, ...]:
        """Returns the reasons why a viewer gets the show with the index ``index``."""
        reasons = self.fitted.reasons_for(viewer_number, int(self.show_rows[index]))[: self.settings.reasons]
        return tuple(
            RecommendationReason(
                title=self.title_texts[reason.title], share=round(reason.share, 4), liked=reason.liked
            )
            for reason in reasons
            if reason.share >= MIN_REASON_SHARE
        )


def titles_to_rank(shows: Sequence[Show], opinions: pa.Table) -> dict[str, str]:
    """Returns the titles of upcoming shows, then the titles of other rated shows, by show key."""
    titles_by_show = {show.show_key: show.programmes[0].title for show in shows}
    rated_titles = dict(zip(opinions["show_key"].to_pylist(), opinions["title"].to_pylist(), strict=True))
    return titles_by_show | {key: title for key, title in rated_titles.items() if key not in titles_by_show}
