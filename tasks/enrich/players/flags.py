"""Selects categories for Jellyfin and Emby, which flag programmes as movie, sports, news or kids.

Both servers have a list of categories per flag, which the user can edit. A programme has a flag if one of its
categories is in the list, ignoring case. A sports programme without such a category gets the category
"Sports", for example. In both servers, a movie loses its episode number and its sub-title and is not recorded
as a series. Therefore a programme with an episode number never gets a movie category, and a programme with a
movie category never gets an episode number.
"""

from typing import ClassVar

from tasks.enrich.players.base import NUMBER, PlayerRules, Programme
from tasks.form import configurable, setting

FLAG_CATEGORIES = {  # default lists of both servers, by kind of programme
    "film": frozenset(("movie",)),
    "sport": frozenset(("sports", "basketball", "baseball", "football")),
    "news": frozenset(("news", "journalism", "documentary", "current affairs")),
    "children": frozenset(("kids", "family", "children", "childrens", "disney")),
}
_DESCRIPTION = "Category that is added to %s; it must be in the server's list"


@configurable
class CategoryFlags(PlayerRules):
    """Strategy that adds one category per flag. Both servers recognise a series by its episode numbers."""

    needs: ClassVar[frozenset[str]] = frozenset((NUMBER,))
    movie: str = setting("Movie", _DESCRIPTION % "films")
    sports: str = setting("Sports", _DESCRIPTION % "sport")
    news: str = setting("News", _DESCRIPTION % "news")
    kids: str = setting("Kids", _DESCRIPTION % "children's programmes")

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the categories of the flags that a programme should have but its categories do not set."""
        names = {"film": self.movie, "sport": self.sports, "news": self.news, "children": self.kids}
        categories = {category.casefold() for category in programme.categories}
        excluded_kinds = {"film"} if programme.numbered or "series" in programme.kinds else set[str]()
        return tuple(
            name
            for kind, name in names.items()
            if kind in programme.kinds - excluded_kinds
            and not categories & (FLAG_CATEGORIES[kind] | {name.casefold()})
        )

    def excludes_number(self, category: str) -> bool:
        """Returns whether a category flags a programme as a movie, which must not have an episode number."""
        return category.casefold() in FLAG_CATEGORIES["film"] | {self.movie.casefold()}
