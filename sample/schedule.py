"""One week of television from the lists: who shows what when. No dirt yet.

A channel takes the titles that its dayparts can place and draws, for every slot, the one it has shown least. A strip
repeats Monday's draw until Friday. A few titles are premieres: they come on the weekend only, so that a model trained
on the first three quarters of the week meets titles it has never seen.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sample.lists import LANGUAGES, Channel, Daypart, Listing, read_channels, read_dayparts, read_placeholders, read_titles

MONDAY = datetime(2026, 1, 12)  # UTC; a week without a change of clocks anywhere
WEEK = timedelta(days=7)
PREMIERES_FROM = MONDAY + timedelta(days=5, hours=8)  # Saturday 08:00, after three quarters of the week
KNOWN_UNTIL = MONDAY + timedelta(days=5)  # by then every other title has been on
PREMIERE_SHARE = 0.08  # of what is not live: 6 % of all
SHORTEST_SLOT = timedelta(minutes=10)
SECOND_HOME_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class Airing:
    """One programme of the week; times are UTC.

    Attributes:
        part: The daypart it stands in (what else could stand there).
        episode: Number in the season, 0 where there is none.
        repeat: Whether that episode was on earlier in the week.
    """

    channel: Channel
    start: datetime
    stop: datetime
    listing: Listing
    part: Daypart
    season: int = 0
    episode: int = 0
    repeat: bool = False


def plan_week(seed: int) -> list[Airing]:
    """The week, channel by channel, each in order of time.

    Raises:
        ValueError: A title of the lists has no daypart on any channel of its language, or no slot in the week.
    """
    channels, dayparts = read_channels(), read_dayparts()
    listings = [listing for language in LANGUAGES for listing in read_titles(language)]
    rng = random.Random(f"{seed} premieres")
    premieres = {listing for listing in listings if listing.form != "live" and rng.random() < PREMIERE_SHARE}
    homes = _find_homes(listings, channels, dayparts, random.Random(f"{seed} homes"))
    week: list[Airing] = []
    for channel in channels:
        week += _fill_channel(channel, dayparts[channel.theme], homes[channel.id], premieres, random.Random(f"{seed} {channel.id}"))
    week = _place_missing(week, homes, [listing for listing in listings if listing not in premieres], MONDAY, KNOWN_UNTIL)
    week = _place_missing(week, homes, [listing for listing in listings if listing in premieres], PREMIERES_FROM, MONDAY + WEEK)
    return _number_episodes(week, random.Random(f"{seed} episodes"))


def running_minutes(listing: Listing, rng: random.Random) -> int:
    """A running time within the kind's span, in steps of five minutes."""
    low, high = listing.minutes
    return rng.randrange(low, high + 1, 5)


def _find_homes(listings: Sequence[Listing], channels: Sequence[Channel], dayparts: dict[str, list[Daypart]], rng: random.Random) -> dict[str, list[Listing]]:
    """Channel id to its titles: each title goes where its kind has most hours for the titles already there."""
    homes: dict[str, list[Listing]] = {channel.id: [] for channel in channels}
    hours: dict[tuple[str, str], float] = {}
    for channel in channels:
        for part in dayparts[channel.theme]:
            length = (part.hours[1] - part.hours[0]) * (1.0 if part.strip else 5.0 if part.weekday else 2.0)
            for kind in part.kinds:
                hours[channel.id, kind] = hours.get((channel.id, kind), 0.0) + length / len(part.kinds)
    load: Counter[tuple[str, str]] = Counter()
    for listing in listings:
        room = {channel.id: sum(hours.get((channel.id, kind), 0.0) for kind in listing.kinds) for channel in channels if channel.language == listing.language}
        fitting = sorted((-hours_free / (1 + load[home, listing.kinds[0]]), home) for home, hours_free in room.items() if hours_free)
        if not fitting:
            raise ValueError(f"no {listing.language} channel shows {listing.title!r} ({', '.join(listing.kinds)}); add its kind to a daypart of dayparts.tsv")
        for _, home in fitting[: 2 if rng.random() < SECOND_HOME_SHARE else 1]:
            homes[home].append(listing)
            load[home, listing.kinds[0]] += 1
    return homes


def _fill_channel(channel: Channel, dayparts: Sequence[Daypart], titles: Sequence[Listing], premieres: set[Listing], rng: random.Random) -> list[Airing]:
    """A channel's week from the first midnight UTC to the last, without a gap."""
    shown: Counter[str] = Counter()
    order = {listing.title: rng.random() for listing in titles}
    placeholders = read_placeholders(channel.language)
    strips: dict[Daypart, list[Listing]] = {}
    airings: list[Airing] = []
    now, end = MONDAY, MONDAY + WEEK
    while now < end:
        local = now + timedelta(minutes=channel.offset_minutes)
        weekday = local.weekday() < 5
        part = next(part for part in dayparts if part.weekday == weekday and part.hours[0] <= local.hour < part.hours[1])
        part_end = now + (local.replace(hour=0, minute=0) + timedelta(hours=part.hours[1]) - local)
        strip = strips.get(part) if part.strip else None
        drawn: list[Listing] = []
        while now < min(part_end, end):
            if strip is not None and len(drawn) < len(strip):
                listing = strip[len(drawn)]
            else:
                listing = _draw(part, len(drawn), titles, placeholders, shown, order, premieres if now < PREMIERES_FROM else set(), rng)
            drawn.append(listing)
            shown[listing.title] += 1
            stop = now + timedelta(minutes=running_minutes(listing, random.Random(f"{listing.title} {channel.id}")))
            if listing.form != "film" and stop > part_end - SHORTEST_SLOT:  # films overrun, all else fills its daypart
                stop = part_end
            stop = min(stop, end)
            airings.append(Airing(channel=channel, start=now, stop=stop, listing=listing, part=part))
            now = stop
        if part.strip and part not in strips:
            strips[part] = drawn
    return airings


def _draw(
    part: Daypart,
    slot: int,
    titles: Sequence[Listing],
    placeholders: Sequence[Listing],
    shown: Counter[str],
    order: dict[str, float],
    not_yet: set[Listing],
    rng: random.Random,
) -> Listing:
    """The title for a slot: of the kind whose turn it is, else of the next kind; the one shown least."""
    for turn in range(len(part.kinds)):
        kind = part.kinds[(slot + turn) % len(part.kinds)]
        if kind == "placeholder":
            return rng.choice(placeholders)
        fitting = [listing for listing in titles if kind in listing.kinds and listing not in not_yet]
        if fitting:
            return min(fitting, key=lambda listing: (shown[listing.title], order[listing.title]))
    return rng.choice(placeholders)


def _place_missing(week: list[Airing], homes: dict[str, list[Listing]], listings: Sequence[Listing], begin: datetime, end: datetime) -> list[Airing]:
    """Gives every title that is not on before an instant a slot, after another, of the most shown title that stands where it could."""
    week = list(week)
    inside = [index for index, airing in enumerate(week) if begin <= airing.start < end]
    counts = Counter((airing.listing.language, airing.listing.title) for airing in week if airing.start < end)
    for listing in listings:
        if counts[listing.language, listing.title]:
            continue
        spare = [
            index
            for index in inside
            if week[index].channel.language == listing.language
            and set(week[index].part.kinds) & set(listing.kinds)
            and "placeholder" not in week[index].listing.kinds
            and counts[listing.language, week[index].listing.title] > 1
        ]
        if not spare:
            raise ValueError(f"no slot for {listing.title!r} ({', '.join(listing.kinds)}); give its kind more hours in dayparts.tsv")
        best = max(
            spare,
            key=lambda index: (
                week[index].listing.form == listing.form,
                listing in homes[week[index].channel.id],
                counts[listing.language, week[index].listing.title],
                -index,
            ),
        )
        counts[listing.language, week[best].listing.title] -= 1
        counts[listing.language, listing.title] += 1
        week[best] = replace(week[best], listing=listing)
    return week


def _number_episodes(week: list[Airing], rng: random.Random) -> list[Airing]:
    """Episode numbers that rise through the week on each channel; one airing in six repeats an earlier one."""
    latest: dict[tuple[str, str], tuple[int, int]] = {}
    numbered = []
    for airing in week:
        if airing.listing.form != "series":
            numbered.append(airing)
            continue
        key = airing.channel.id, airing.listing.title
        known = key in latest
        season, episode = latest.get(key, (rng.randint(1, 14), rng.randint(1, 16)))
        repeat = known and rng.random() < 1 / 6
        latest[key] = season, episode + (known and not repeat)
        numbered.append(replace(airing, season=season, episode=latest[key][1], repeat=repeat))
    return numbered
