"""Plans the schedule of one week from the lists, without errors.

Every slot of a channel gets a title whose kind fits the part of the day, and which the channel has shown
least. A strip repeats the title of Monday until Friday. A few titles are premieres and air only at the
weekend, so that a model that is trained on the first three quarters of the week meets unseen titles.
"""

import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import NamedTuple

from sample import lists
from sample.lists import LANGUAGES, Channel, Daypart, Listing

MONDAY = datetime(2026, 1, 12)  # UTC; a week without a change of clocks anywhere
WEEK = timedelta(days=7)
PREMIERES_FROM = MONDAY + timedelta(days=5, hours=8)  # Saturday 08:00, after three quarters of the week
KNOWN_UNTIL = MONDAY + timedelta(days=5)  # by then, every other title has aired
PREMIERE_SHARE = 0.08  # of the titles that are not live; 6 % of all titles
SHORTEST_SLOT = timedelta(minutes=10)
SECOND_HOME_SHARE = 0.15
REPEAT_SHARE = 1 / 6

Homes = dict[str, list[Listing]]  # channel id to its titles


class Airing(NamedTuple):
    """One programme of the week; times are UTC."""

    channel: Channel
    start: datetime
    stop: datetime
    listing: Listing
    part: Daypart  # determines which other titles could be shown
    season: int = 0
    episode: int = 0  # in the season; 0: none
    repeat: bool = False  # the episode aired earlier in the week


def plan_week(seed: int) -> list[Airing]:
    """Returns the airings of the week by channel, in order of time.

    Raises:
        ValueError: A title has no daypart on any channel of its language, or no slot in the week.
    """
    channels, dayparts = lists.read_channels(), lists.read_dayparts()
    listings = [listing for language in LANGUAGES for listing in lists.read_titles(language)]
    rng = random.Random(f"{seed} premieres")
    premieres = {listing for listing in listings if listing.form != "live" and rng.random() < PREMIERE_SHARE}
    homes = _find_homes(listings, channels, dayparts, random.Random(f"{seed} homes"))
    week: list[Airing] = []
    for channel in channels:
        parts, titles = dayparts[channel.theme], homes[channel.id]
        week += _fill_channel(channel, parts, titles, premieres, random.Random(f"{seed} {channel.id}"))
    for begin, end in ((MONDAY, KNOWN_UNTIL), (PREMIERES_FROM, MONDAY + WEEK)):
        due = [listing for listing in listings if (listing in premieres) == (begin == PREMIERES_FROM)]
        _place_missing(week, homes, due, begin, end)
    return _number_episodes(week, random.Random(f"{seed} episodes"))


def _find_homes(
    listings: list[Listing], channels: list[Channel], dayparts: dict[str, list[Daypart]], rng: random.Random
) -> Homes:
    """Assigns each title to the channel with the most hours per assigned title for its kind."""
    homes: Homes = {channel.id: [] for channel in channels}
    hours: dict[tuple[str, str], float] = defaultdict(float)
    for channel in channels:
        for part in dayparts[channel.theme]:
            length = (part.hours[1] - part.hours[0]) * (1.0 if part.strip else 5.0 if part.weekday else 2.0)
            for kind in part.kinds:
                hours[channel.id, kind] += length / len(part.kinds)
    load: Counter[tuple[str, str]] = Counter()
    for listing in listings:
        fitting = []
        for channel in channels:
            room = sum(hours[channel.id, kind] for kind in listing.kinds)
            if room and channel.language == listing.language:
                fitting.append((-room / (1 + load[channel.id, listing.kinds[0]]), channel.id))
        if not fitting:
            problem = f"no {listing.language} channel shows {listing.title!r} ({', '.join(listing.kinds)})"
            raise ValueError(f"{problem}; add its kind to a daypart of dayparts.tsv")
        for _, home in sorted(fitting)[: 2 if rng.random() < SECOND_HOME_SHARE else 1]:
            homes[home].append(listing)
            load[home, listing.kinds[0]] += 1
    return homes


def _fill_channel(
    channel: Channel, dayparts: list[Daypart], titles: list[Listing], new: set[Listing], rng: random.Random
) -> list[Airing]:
    """Returns the week of a channel in UTC, without gaps; premieres air only at the weekend."""
    order = {listing.title: rng.random() for listing in titles}
    placeholders = lists.read_placeholders(channel.language)
    shown, strips, airings = Counter[str](), dict[Daypart, list[Listing]](), list[Airing]()
    now, end = MONDAY, MONDAY + WEEK

    def draw(part: Daypart, slot: int) -> Listing:
        """Returns the title that was shown least, of the next kind in turn that has one."""
        not_yet = new if now < PREMIERES_FROM else set()
        for turn in range(len(part.kinds)):
            kind = part.kinds[(slot + turn) % len(part.kinds)]
            if kind == "placeholder":
                break
            if fitting := [one for one in titles if kind in one.kinds and one not in not_yet]:
                return min(fitting, key=lambda listing: (shown[listing.title], order[listing.title]))
        return rng.choice(placeholders)

    while now < end:
        local = now + timedelta(minutes=channel.offset_minutes)
        today = [part for part in dayparts if part.weekday == (local.weekday() < 5)]
        part = next(part for part in today if part.hours[0] <= local.hour < part.hours[1])
        part_end = now + (local.replace(hour=0, minute=0) + timedelta(hours=part.hours[1]) - local)
        strip = strips.get(part, [])
        drawn: list[Listing] = []
        while now < min(part_end, end):
            listing = strip[len(drawn)] if len(drawn) < len(strip) else draw(part, len(drawn))
            drawn.append(listing)
            shown[listing.title] += 1
            low, high = listing.minutes
            minutes = random.Random(f"{listing.title} {channel.id}").randrange(low, high + 1, 5)
            stop = now + timedelta(minutes=minutes)
            if listing.form != "film" and stop > part_end - SHORTEST_SLOT:  # films overrun
                stop = part_end
            airings.append(Airing(channel, now, min(stop, end), listing, part))
            now = airings[-1].stop
        if part.strip:
            strips.setdefault(part, drawn)
    return airings


def _place_missing(
    week: list[Airing], homes: Homes, listings: list[Listing], begin: datetime, end: datetime
) -> None:
    """Gives each title without an airing before ``end`` the slot of the most shown replaceable title."""
    counts = Counter((airing.listing.language, airing.listing.title) for airing in week if airing.start < end)
    for listing in listings:
        if counts[listing.language, listing.title]:
            continue
        fits = []  # same form, same channel, number of airings; of equal ones, the first
        for index, (channel, start, _, there, part, *_) in enumerate(week):
            shown = counts[there.language, there.title]
            replaceable = (
                channel.language == listing.language and "placeholder" not in there.kinds and shown > 1
            )
            if begin <= start < end and replaceable and set(part.kinds) & set(listing.kinds):
                fits.append((there.form == listing.form, listing in homes[channel.id], shown, -index))
        if not fits:
            problem = f"no slot for {listing.title!r} ({', '.join(listing.kinds)})"
            raise ValueError(f"{problem}; give its kind more hours in dayparts.tsv")
        best = -max(fits)[-1]
        counts[listing.language, week[best].listing.title] -= 1
        counts[listing.language, listing.title] += 1
        week[best] = week[best]._replace(listing=listing)


def _number_episodes(week: list[Airing], rng: random.Random) -> list[Airing]:
    """Numbers episodes in ascending order on each channel; some airings repeat the previous episode."""
    latest: dict[tuple[str, str], tuple[int, int]] = {}
    numbered = []
    for airing in week:
        if airing.listing.form == "series":
            key = airing.channel.id, airing.listing.title
            known = key in latest
            season, episode = latest.get(key, (rng.randint(1, 14), rng.randint(1, 16)))
            repeat = known and rng.random() < REPEAT_SHARE
            latest[key] = season, episode + (known and not repeat)
            airing = airing._replace(season=season, episode=latest[key][1], repeat=repeat)
        numbered.append(airing)
    return numbered
