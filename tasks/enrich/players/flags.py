"""Selects categories for Jellyfin and Emby, which flag programmes as movie, sports, news or kids.

Both servers compare each category with lists that the user can edit, ignoring case. A programme without a
category in a list gets the word of the list. In both servers, a movie loses its episode number and its
sub-title and is not recorded as a series. Therefore an episode number and a movie category exclude each
other, and the number has priority.
"""

from typing import ClassVar

from tasks.enrich.players.base import NUMBER, PlayerRules, Programme
from tasks.form import configurable, setting

LISTS = {  # default lists of both servers
    "film": frozenset(("movie",)),
    "sport": frozenset(("sports", "basketball", "baseball", "football")),
    "news": frozenset(("news", "journalism", "documentary", "current affairs")),
    "children": frozenset(("kids", "family", "children", "childrens", "disney")),
}
_WORD = "Category for %s; it must be in the server's list"


@configurable
class CategoryFlags(PlayerRules):
    """Strategy that adds one category per flag; both servers recognise series by their episode numbers."""

    needs: ClassVar[frozenset[str]] = frozenset((NUMBER,))
    movie: str = setting("Movie", _WORD % "films")
    sports: str = setting("Sports", _WORD % "sport")
    news: str = setting("News", _WORD % "news")
    kids: str = setting("Kids", _WORD % "children's programmes")

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the categories for those flags that no category of the programme sets."""
        words = {"film": self.movie, "sport": self.sports, "news": self.news, "children": self.kids}
        folded = {category.casefold() for category in programme.categories}
        excluded_kinds = {"film"} if programme.numbered or "series" in programme.kinds else set[str]()
        return tuple(
            word
            for kind, word in words.items()
            if kind in programme.kinds - excluded_kinds and not folded & (LISTS[kind] | {word.casefold()})
        )

    def excludes_number(self, category: str) -> bool:
        """Returns whether a category flags a programme as a movie, which must not have an episode number."""
        return category.casefold() in LISTS["film"] | {self.movie.casefold()}
