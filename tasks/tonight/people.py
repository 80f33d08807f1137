"""Adds the people of programmes to recommendations, such as "with Ann Actor, as in Vera" (a liked title)."""

import dataclasses
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from storage.catalogue.evening import credited_titles, read_credits
from tasks.text.titles import parse_title
from tasks.tonight.choose import Credit, Evening, LikedPerson, Recommendation

MAX_PEOPLE = 2  # maximum number of people of liked titles per programme
DIRECTOR = "director"


def add_credits(recommendations: Sequence[Recommendation], guide: Path) -> list[Recommendation]:
    """Adds to each recommendation the credits and the icon that the guide has for its airings."""
    details_by_row = read_credits(guide, (row for item in recommendations for row in item.programme.rows))
    with_credits = []
    for item in recommendations:
        airings = [details_by_row[row] for row in item.programme.rows if row in details_by_row]
        people = next((people for people, _ in airings if people), [])
        credits = tuple(Credit(role=person["role"], name=person["name"]) for person in people)
        icon = next((icon for _, icon in airings if icon), "")
        with_credits.append(dataclasses.replace(item, credits=credits, icon=icon))
    return with_credits


def add_liked_people(
    evening: Evening, recommendations: Sequence[Recommendation], guide: Path
) -> list[Recommendation]:
    """Adds to each recommendation the people who also take part in a title that the viewer likes.

    Directors are compared with directors; actors, guests and presenters with each other. The credits of
    liked titles come from the guide.

    Args:
        evening: Evening of the recommendations.
        recommendations: List of one viewer, with credits.
        guide: Guide folder.
    """
    if not recommendations:
        return []
    liked = evening.liked_titles(recommendations[0].viewer)
    names = {credit.name for item in recommendations for credit in item.credits}
    people_keys: dict[tuple[str, bool], set[str]] = {}  # show keys of liked titles by name and kind of role
    for title, role, name in credited_titles(guide, names) if liked else ():
        people_keys.setdefault((name, role == DIRECTOR), set()).add(parse_title(title).show_key)
    return [
        _add_people(item, evening.show_key(item.programme), liked, people_keys) for item in recommendations
    ]


def _add_people(
    recommendation: Recommendation,
    show_key: str,
    liked: Mapping[str, str],
    people_keys: Mapping[tuple[str, bool], Set[str]],
) -> Recommendation:
    """Returns the recommendation with at most MAX_PEOPLE people of liked titles, in the order of credits.

    Args:
        recommendation: Recommendation with credits.
        show_key: Show key of the recommended programme.
        liked: Titles that the viewer likes, by show key.
        people_keys: Show keys of liked titles by (name of a person, whether the person is the director).
    """
    people: dict[str, LikedPerson] = {}
    for credit in recommendation.credits:
        keys = people_keys.get((credit.name, credit.role == DIRECTOR), set())
        title = next((title for key, title in liked.items() if key in keys and key != show_key), None)
        if title is not None:
            people.setdefault(credit.name, LikedPerson(name=credit.name, role=credit.role, title=title))
    return dataclasses.replace(recommendation, people=tuple(people.values())[:MAX_PEOPLE])
