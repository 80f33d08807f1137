"""Adds people of liked titles to recommendations: "with Ann Actor, as in Vera" if the viewer likes Vera."""

import dataclasses
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from storage.catalogue.evening import credited_titles, read_credits
from tasks.text.titles import parse_title
from tasks.tonight.choose import Credit, Evening, LikedPerson, Recommendation

MAX_PEOPLE = 2  # maximum number of people of liked titles that are added to a programme
DIRECTOR = "director"


def add_credits(recommendations: Sequence[Recommendation], guide: Path) -> list[Recommendation]:
    """Adds to each recommendation the credits and the icon that the guide has for its airings."""
    details_by_row = read_credits(guide, (row for item in recommendations for row in item.programme.rows))
    extended = []
    for item in recommendations:
        details = [details_by_row[row] for row in item.programme.rows if row in details_by_row]
        people = next((people for people, _ in details if people), [])
        credits = tuple(Credit(role=person["role"], name=person["name"]) for person in people)
        icon = next((icon for _, icon in details if icon), "")
        extended.append(dataclasses.replace(item, credits=credits, icon=icon))
    return extended


def add_liked_people(
    evening: Evening, recommendations: Sequence[Recommendation], guide: Path
) -> list[Recommendation]:
    """Adds to each recommendation the people who also take part in a title that the viewer likes.

    A director must also be a director of the liked title. For actors, guests and presenters, the role in the
    liked title may differ. The credits of liked titles are read from the guide.

    Args:
        evening: Evening of the recommendations.
        recommendations: List of one viewer, with credits.
        guide: Folder with the Parquet files of the Guide.
    """
    if not recommendations:
        return []
    liked = evening.liked_titles(recommendations[0].viewer)
    names = {credit.name for item in recommendations for credit in item.credits}
    # show keys of titles by (name of a person, whether the person is the director)
    keys_by_person: dict[tuple[str, bool], set[str]] = {}
    for title, role, name in credited_titles(guide, names) if liked else ():
        keys_by_person.setdefault((name, role == DIRECTOR), set()).add(parse_title(title).show_key)
    return [
        _add_people(item, evening.show_key(item.programme), liked, keys_by_person) for item in recommendations
    ]


def _add_people(
    recommendation: Recommendation,
    show_key: str,
    liked: Mapping[str, str],
    keys_by_person: Mapping[tuple[str, bool], Set[str]],
) -> Recommendation:
    """Adds at most MAX_PEOPLE people of liked titles to a recommendation, in the order of its credits.

    Args:
        recommendation: Recommendation with credits.
        show_key: Show key of the recommended programme.
        liked: Titles that the viewer likes, by show key, the most liked first.
        keys_by_person: Show keys of titles by (name of a person, whether the person is the director).
    """
    people: dict[str, LikedPerson] = {}
    for credit in recommendation.credits:
        keys = keys_by_person.get((credit.name, credit.role == DIRECTOR), set())
        title = next((title for key, title in liked.items() if key in keys and key != show_key), None)
        if title is not None:
            people.setdefault(credit.name, LikedPerson(name=credit.name, role=credit.role, title=title))
    return dataclasses.replace(recommendation, people=tuple(people.values())[:MAX_PEOPLE])
