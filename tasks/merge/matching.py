"""Decides which channels of the feeds belong to which channel of the merged guide.

A channel of the playlist and a channel of a feed match if the feed's id is the ``tvg-id``, or if a name is
equal after normalization (names.py) and no other channel of the feed has it. Without a playlist, the channels
of all feeds are written; two feeds have the same channel if its id is equal and names do not contradict.

Ids such as "1" and names such as "Discovery Channel" mean different channels in different countries.
Therefore a further feed is used for holes only if its titles agree with those of the preferred feed where
both have programmes. What does not match for sure is a proposal (decisions.py).

MIN_AGREEMENT is in a gap of the shares on six development guides (US1, ZA1, FR1, NL1, NO1, GR1). Of 79 pairs
of channels with equal names in two countries, 73 agree on at most .14 of the titles (CNN and Arte, too, in
two languages) and six on at least .24. Five of the six are the same channel (Mezzo .25, Rai Uno .34, Asharq
News .43, TVE .61, Euronews .72), Cartoon Network (.24) is not. Of 29,958 random pairs with different names,
7 agree on .2 or more.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.merge.decisions import YES, Proposal
from tasks.merge.index import Channel, FeedIndex
from tasks.merge.names import NearNames, hours_between, normalize
from tasks.merge.playlist import HOUR, Entry

MIN_COMMON = 8  # programmes at times of both feeds, from which their titles are compared
MIN_AGREEMENT = 0.2  # share of equal titles at equal times
SAME_START = HOUR // 6  # programmes that begin within ten minutes are compared


@dataclass(frozen=True)
class Member:
    """A channel of a feed (index into the feeds), and what is added to its times in microseconds."""

    feed: int
    channel: Channel
    shift: int = 0


@dataclass
class Target:
    """A channel of the merged guide; the first member is preferred."""

    id: str
    names: tuple[str, ...]
    shift: int = 0
    members: list[Member] = field(default_factory=list)

    @property
    def keys(self) -> frozenset[str]:
        """Normalized names."""
        return frozenset(filter(None, map(normalize, self.names)))


@dataclass(frozen=True)
class Matching:
    """Targets in the order of the playlist or of the feeds, and proposals (decided ones included)."""

    targets: list[Target]
    proposals: list[Proposal]


Decisions = Mapping[tuple[str, str, str], Proposal]


class _Matcher:
    def __init__(self, feeds: Sequence[FeedIndex], decisions: Decisions) -> None:
        self.feeds, self.decisions = feeds, decisions
        self.proposals: dict[tuple[str, str, str], Proposal] = dict(decisions)
        self.confirmed: dict[str, list[Proposal]] = defaultdict(list)
        for row in decisions.values():
            if row.use == YES:
                self.confirmed[row.id].append(row)
        self.sources = {feed.source: number for number, feed in enumerate(feeds)}

    def answer(self, target: Target, number: int, channel: Channel) -> str:
        row = self.decisions.get((target.id, self.feeds[number].source, channel.id))
        return row.use if row else ""

    def propose(self, target: Target, number: int, channel: Channel, similarity: float) -> None:
        hours = hours_between(target.names, channel.names)
        row = Proposal(
            id=target.id,
            name=next(iter(target.names), ""),
            feed=self.feeds[number].source,
            channel=channel.id,
            channel_name=next(iter(channel.names), ""),
            shift_hours=float(hours),
            similarity=round(similarity, 2),
        )
        self.proposals.setdefault(row.key, row)

    def add_confirmed_(self, target: Target) -> None:
        for row in self.confirmed[target.id]:
            number = self.sources.get(row.feed, -1)
            if number >= 0 and (channel := self.feeds[number].channels.get(row.channel)):
                target.members.append(Member(number, channel, target.shift + round(row.shift_hours * HOUR)))

    def add_(self, target: Target, number: int, channel: Channel) -> None:
        """Adds a match, or proposes it if it contradicts the preferred feed."""
        if self.answer(target, number, channel) or any(member.feed == number for member in target.members):
            return  # rejected, or confirmed and added already
        preferred = target.members[0] if target.members else None
        if preferred is not None:
            share = agreement(
                self.feeds[preferred.feed].rows_of(preferred.channel.id),
                self.feeds[number].rows_of(channel.id),
                target.shift - preferred.shift,
            )
            if share is not None and share < MIN_AGREEMENT:
                self.propose(target, number, channel, 1.0)
                return
        target.members.append(Member(number, channel, target.shift))


def match_playlist(feeds: Sequence[FeedIndex], entries: Sequence[Entry], decisions: Decisions) -> Matching:
    """Matches the channels of a playlist with those of feeds, which are in order of preference."""
    matcher = _Matcher(feeds, decisions)
    targets = [Target(entry.id, entry.names, entry.shift) for entry in entries]
    by_id, by_name = [], []
    for feed in feeds:
        folded, named = defaultdict(list), defaultdict(list)
        for channel in feed.channels.values():
            folded[channel.id.casefold()].append(channel)
            for key in channel.keys:
                named[key].append(channel)
        by_id.append(folded)
        by_name.append(named)
    for target in targets:
        matcher.add_confirmed_(target)
        for number, feed in enumerate(feeds):
            exact = feed.channels.get(target.id)
            same_id = [exact] if exact else by_id[number].get(target.id.casefold(), [])
            keys = target.keys | {normalize(target.id)}
            matches = same_id or list(
                {
                    channel.id: channel for key in sorted(keys) for channel in by_name[number].get(key, ())
                }.values()
            )
            if len(matches) == 1:
                matcher.add_(target, number, matches[0])
            for channel in matches if len(matches) > 1 else ():
                if not matcher.answer(target, number, channel):
                    matcher.propose(target, number, channel, 1.0)
    _propose_near(matcher, [target for target in targets if not target.members])
    ids = {target.id for target in targets}
    return Matching(targets, [row for row in matcher.proposals.values() if row.use or row.id in ids])


def _propose_near(matcher: _Matcher, targets: Sequence[Target]) -> None:
    if not targets:
        return
    channels = [
        (number, channel) for number, feed in enumerate(matcher.feeds) for channel in feed.channels.values()
    ]
    near = NearNames({index: channel.names for index, (_, channel) in enumerate(channels)})
    for target in targets:
        for similarity, index in near.near(target.names or (target.id,)):
            number, channel = channels[index]
            if not matcher.answer(target, number, channel):
                matcher.propose(target, number, channel, similarity)


def match_all(feeds: Sequence[FeedIndex], decisions: Decisions) -> Matching:
    """Writes the channels of all feeds, which are in order of preference.

    A channel whose id has another name in a preferred feed gets a number after its id.
    """
    matcher = _Matcher(feeds, decisions)
    targets: dict[str, Target] = {}
    used = {(row.feed, row.channel) for row in decisions.values() if row.use == YES}
    for number, feed in enumerate(feeds):
        for channel in feed.channels.values():
            if (feed.source, channel.id) in used:
                continue
            target = targets.get(channel.id)
            if target is not None:
                before = len(target.members)
                is_same_name = bool(channel.keys & target.keys) or not (channel.keys and target.keys)
                if is_same_name:
                    matcher.add_(target, number, channel)
                elif not matcher.answer(target, number, channel):
                    matcher.propose(target, number, channel, 1.0)
                if len(target.members) > before:
                    continue
            id_ = next(_free_ids(channel.id, targets))
            targets[id_] = Target(id_, channel.names, 0, [Member(number, channel)])
    for target in targets.values():
        matcher.add_confirmed_(target)
    return Matching(list(targets.values()), list(matcher.proposals.values()))


def _free_ids(id_: str, taken: Mapping[str, Target]) -> Iterator[str]:
    if id_ not in taken:
        yield id_
    number = 2
    while True:
        if (numbered := f"{id_}.{number}") not in taken:
            yield numbered
        number += 1


def agreement(first: np.ndarray, second: np.ndarray, shift: int = 0) -> float | None:
    """Returns the share of programmes of ``second`` whose title ``first`` has at the same time.

    Only programmes at times of both are compared; None if there are fewer than MIN_COMMON. ``shift`` is added
    to the times of ``second``, in microseconds.
    """
    if not len(first) or not len(second):
        return None
    starts = second["start"] + shift
    common = (starts >= first["start"][0]) & (starts <= first["start"][-1])
    if int(common.sum()) < MIN_COMMON:
        return None
    same = np.zeros(int(common.sum()), dtype=bool)
    place = np.searchsorted(first["start"], starts[common])
    for offset in (-1, 0, 1):
        near = np.clip(place + offset, 0, len(first) - 1)
        is_near = np.abs(first["start"][near] - starts[common]) <= SAME_START
        same |= is_near & (first["title"][near] == second["title"][common])
    return float(same.mean())
