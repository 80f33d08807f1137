"""Decides which channels of feeds are used for each channel of the merged guide.

A channel of the playlist and a channel of a feed match if the id in the feed is the ``tvg-id``, or if a name
is equal after normalization (names.py) and no other channel of the feed has this name. Without a playlist,
the channels of all feeds are written; channels of two feeds match if their ids are equal and their names do
not contradict.

Ids such as "1" and names such as "Discovery Channel" mean different channels in different countries.
Therefore another feed fills gaps of the preferred feed only if its titles agree with the titles of the
preferred feed at times when both have programmes. Uncertain matches are proposed to the user (decisions.py).

MIN_AGREEMENT lies in a gap of the shares on six development guides (US1, ZA1, FR1, NL1, NO1, GR1). Of 79
pairs of channels with equal names in two countries, 73 agree on at most .14 of the titles (also CNN and Arte,
in two languages) and six on at least .24. Five of the six are the same channel (Mezzo .25, Rai Uno .34,
Asharq News .43, TVE .61, Euronews .72), and Cartoon Network (.24) is not. Of 29,958 random pairs with
different names, 7 agree on .2 or more.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.merge.decisions import YES, Proposal
from tasks.merge.index import Channel, FeedIndex
from tasks.merge.names import NearNames, hours_between, normalize
from tasks.merge.playlist import HOUR, PlaylistChannel

MIN_COMMON = 8  # minimum number of programmes in the common time of two feeds to compare their titles
MIN_AGREEMENT = 0.2  # minimum share of equal titles at equal times
SAME_START = HOUR // 6  # maximum difference of starts of compared programmes, in microseconds


@dataclass(frozen=True)
class Member:
    """Channel of a feed that is used for a channel of the merged guide."""

    feed: int  # index of the feed
    channel: Channel
    shift: int = 0  # microseconds that are added to the times of its programmes


@dataclass
class Target:
    """Channel of the merged guide."""

    id: str
    names: tuple[str, ...]
    shift: int = 0  # microseconds that the playlist adds to the times of programmes
    members: list[Member] = field(default_factory=list)  # channels of feeds, the preferred one first

    @property
    def keys(self) -> frozenset[str]:
        """Normalized names of the channel, by which it is compared."""
        return frozenset(filter(None, map(normalize, self.names)))


@dataclass(frozen=True)
class Matching:
    """Channels of the merged guide, in the order of the playlist or feeds, and proposals for the user."""

    targets: list[Target]
    proposals: list[Proposal]  # including the proposals that the user has answered


Decisions = Mapping[tuple[str, str, str], Proposal]  # answered proposals by key


class _Matcher:
    """Adds channels of feeds to targets, or collects proposals, according to the answers of the user."""

    def __init__(self, feeds: Sequence[FeedIndex], decisions: Decisions) -> None:
        self.feeds, self.decisions = feeds, decisions
        self.proposals: dict[tuple[str, str, str], Proposal] = dict(decisions)
        self.confirmed: dict[str, list[Proposal]] = defaultdict(list)
        for row in decisions.values():
            if row.use == YES:
                self.confirmed[row.id].append(row)
        self.sources = {feed.source: number for number, feed in enumerate(feeds)}

    def answer(self, target: Target, number: int, channel: Channel) -> str:
        """Returns the user's answer in channels.csv (yes, no or "") on a feed's channel for a target.

        ``number`` is the index of the feed.
        """
        row = self.decisions.get((target.id, self.feeds[number].source, channel.id))
        return row.use if row else ""

    def propose(self, target: Target, number: int, channel: Channel, similarity: float) -> None:
        """Proposes a channel of the feed with index ``number`` for a target; ignores repeated proposals."""
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
        """Adds the channels that the user has confirmed for a target."""
        for row in self.confirmed[target.id]:
            number = self.sources.get(row.feed, -1)
            if number >= 0 and (channel := self.feeds[number].channels.get(row.channel)):
                target.members.append(Member(number, channel, target.shift + round(row.shift_hours * HOUR)))

    def add_(self, target: Target, number: int, channel: Channel) -> None:
        """Adds a channel to a target; only proposes it if its titles differ from those of the target."""
        if self.answer(target, number, channel) or any(member.feed == number for member in target.members):
            return  # rejected, or confirmed and added already
        preferred_member = target.members[0] if target.members else None
        if preferred_member is not None:
            share = agreement(
                self.feeds[preferred_member.feed].rows_of(preferred_member.channel.id),
                self.feeds[number].rows_of(channel.id),
                target.shift - preferred_member.shift,
            )
            if share is not None and share < MIN_AGREEMENT:
                self.propose(target, number, channel, 1.0)
                return
        target.members.append(Member(number, channel, target.shift))


def match_playlist(
    feeds: Sequence[FeedIndex], entries: Sequence[PlaylistChannel], decisions: Decisions
) -> Matching:
    """Matches the channels of a playlist with the channels of ``feeds``, preferred feeds first."""
    matcher = _Matcher(feeds, decisions)
    targets = [Target(entry.id, entry.names, entry.shift) for entry in entries]
    by_id, by_name = [], []
    for feed in feeds:
        by_folded_name, by_key = defaultdict(list), defaultdict(list)
        for channel in feed.channels.values():
            by_folded_name[channel.id.casefold()].append(channel)
            for key in channel.keys:
                by_key[key].append(channel)
        by_id.append(by_folded_name)
        by_name.append(by_key)
    for target in targets:
        matcher.add_confirmed_(target)
        for number, feed in enumerate(feeds):
            exact_match = feed.channels.get(target.id)
            same_id = [exact_match] if exact_match else by_id[number].get(target.id.casefold(), [])
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
    """Proposes channels with similar names for targets without a channel."""
    if not targets:
        return
    channels = [
        (number, channel) for number, feed in enumerate(matcher.feeds) for channel in feed.channels.values()
    ]
    near_names = NearNames({index: channel.names for index, (_, channel) in enumerate(channels)})
    for target in targets:
        for similarity, index in near_names.find_similar(target.names or (target.id,)):
            number, channel = channels[index]
            if not matcher.answer(target, number, channel):
                matcher.propose(target, number, channel, similarity)


def match_all(feeds: Sequence[FeedIndex], decisions: Decisions) -> Matching:
    """Matches the channels of all feeds, which are in order of preference, without a playlist.

    If a channel with the same id has another name in a preferred feed, a number is appended to the id.
    """
    matcher = _Matcher(feeds, decisions)
    targets: dict[str, Target] = {}
    used_channels = {(row.feed, row.channel) for row in decisions.values() if row.use == YES}
    for number, feed in enumerate(feeds):
        for channel in feed.channels.values():
            if (feed.source, channel.id) in used_channels:
                continue
            target = targets.get(channel.id)
            if target is not None:
                member_count = len(target.members)
                is_same_name = bool(channel.keys & target.keys) or not (channel.keys and target.keys)
                if is_same_name:
                    matcher.add_(target, number, channel)
                elif not matcher.answer(target, number, channel):
                    matcher.propose(target, number, channel, 1.0)
                if len(target.members) > member_count:
                    continue
            id_ = next(_free_ids(channel.id, targets))
            targets[id_] = Target(id_, channel.names, 0, [Member(number, channel)])
    for target in targets.values():
        matcher.add_confirmed_(target)
    return Matching(list(targets.values()), list(matcher.proposals.values()))


def _free_ids(id_: str, taken_ids: Mapping[str, Target]) -> Iterator[str]:
    """Yields ids that are not taken: the id, then the id with a number from 2."""
    if id_ not in taken_ids:
        yield id_
    number = 2
    while True:
        if (numbered := f"{id_}.{number}") not in taken_ids:
            yield numbered
        number += 1


def agreement(first: np.ndarray, second: np.ndarray, shift: int = 0) -> float | None:
    """Returns the share of programmes of ``second`` for which ``first`` has the same title at the same time.

    Only programmes in the time that both schedules cover are compared. Returns None if there are fewer than
    MIN_COMMON. ``shift`` is added to the times of ``second``, in microseconds.
    """
    if not len(first) or not len(second):
        return None
    starts = second["start"] + shift
    is_common = (starts >= first["start"][0]) & (starts <= first["start"][-1])
    if int(is_common.sum()) < MIN_COMMON:
        return None
    is_same = np.zeros(int(is_common.sum()), dtype=bool)
    positions = np.searchsorted(first["start"], starts[is_common])
    for offset in (-1, 0, 1):
        near_names = np.clip(positions + offset, 0, len(first) - 1)
        is_near = np.abs(first["start"][near_names] - starts[is_common]) <= SAME_START
        is_same |= is_near & (first["title"][near_names] == second["title"][is_common])
    return float(is_same.mean())
