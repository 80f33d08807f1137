"""Adds the categories that TV players (Kodi, Jellyfin …) expect to the programmes of a guide.

This module collects the kind, genre and categories of each programme. From these, the strategies in players/
select the names to add.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.enrich.model import CategoryModel
from tasks.enrich.players import Player
from tasks.enrich.players.base import DVB, Programme
from tasks.enrich.players.dvb import genre_table
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.titles import GuideTitles
from tasks.kinds.decisions import kinds_of_programme
from tasks.kinds.kinds import KindPrediction
from tasks.kinds.model import KindModel


@dataclass(frozen=True)
class PlayerNames:
    """Selects the names to add to the programmes of a guide for TV players.

    Attributes:
        players: Players that read the output.
        kinds: Kinds (film, series …) of each title.
        genres: Predicted DVB genre and its confidence, by index of the title, for titles whose categories
            have no genre.
    """

    players: tuple[Player, ...]
    kinds: Sequence[Sequence[KindPrediction]]
    genres: Mapping[int, tuple[str, float]]

    def excludes_number(self, categories: Sequence[str]) -> bool:
        """Returns whether a programme with these categories must not get an episode number."""
        return any(player.excludes_number(name) for player in self.players for name in categories)

    def select_names(
        self, title: int, categories: Sequence[str], names: Sequence[str], is_numbered: bool
    ) -> tuple[list[str], float, list[tuple[str, str]]]:
        """Selects all names to add to a programme: ``names``, and the names that players expect.

        Args:
            title: Index of the title.
            categories: Categories of the programme in the guide.
            names: Names to add because the programme has no categories. Names that a player does not allow
                for programmes with an episode number are omitted.
            is_numbered: Whether the programme has an episode number, or gets one.

        Returns:
            Names to add; a lower bound of the confidence of the names for players, which is the lowest
            confidence of the kinds and the genre of the programme (1 if players get no name); and (player,
            name) for each name that a player expects.
        """
        allowed_names = [name for name in names if not (is_numbered and self.excludes_number([name]))]
        kinds = kinds_of_programme(self.kinds[title], (*categories, *allowed_names), is_numbered)
        genre, confidence = self.genres.get(title, ("", 1.0))
        programme = Programme(
            categories=(*categories, *allowed_names),
            kinds=frozenset(prediction.kind for prediction in kinds),
            numbered=is_numbered,
            genre=genre,
        )
        player_names = [(player.name, name) for player in self.players for name in player.names(programme)]
        names = list(dict.fromkeys((*allowed_names, *(name for _, name in player_names))))
        probabilities = [prediction.probability for prediction in kinds]
        return names, min(confidence, *probabilities, 1.0) if player_names else 1.0, player_names


def prepare_names(
    guide: GuideTitles,
    model: CategoryModel,
    options: EnrichOptions,
    names_by_title: Mapping[int, Sequence[str]],
) -> PlayerNames:
    """Predicts the kinds of a guide's titles, and the genres of the titles if a player shows DVB genres.

    Args:
        guide: Titles of the guide.
        model: Model that predicts kinds and genres.
        options: Options with the players and the minimum precision.
        names_by_title: Names to add to programmes without categories, by index of the title.
    """
    kinds = KindModel.open(model.folder, options.kind_precision.by_kind()).predict(
        programmes=guide.folder / "programmes.parquet",
        variants=guide.folder / "variants.parquet",
        titles=guide.titles,
        show_keys=guide.show_keys,
        work=guide.folder,
    )
    genres = _predict_genres(guide, model, options, names_by_title) if options.needs(DVB) else {}
    return PlayerNames(options.players, kinds, genres)


def _predict_genres(
    guide: GuideTitles,
    model: CategoryModel,
    options: EnrichOptions,
    names_by_title: Mapping[int, Sequence[str]],
) -> dict[int, tuple[str, float]]:
    """Predicts DVB genres. Returns (genre, confidence) by index of the title.

    Only titles whose categories have no genre, and whose predicted genre is certain enough, are included.
    """
    table = genre_table()
    without_genre = [
        title
        for title in np.flatnonzero(~guide.is_placeholder).tolist()
        if not table.of_categories(names_by_title.get(title, guide.category_lists.get(title, ())))
    ]
    title_ids = np.array(without_genre, dtype=np.int64)
    neighbours = model.neighbours(model.embed(guide, title_ids))
    languages = np.array([guide.languages[title] for title in without_genre], dtype=str)
    predictions = model.predict(neighbours, languages, table, 0, options.minimum_precision)
    return {
        without_genre[position]: (predictions.names[position], float(predictions.confidence[position]))
        for position in np.flatnonzero(predictions.is_selected)
    }
