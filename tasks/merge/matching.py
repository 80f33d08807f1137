"""Decides which channels of feeds are used for each channel of the merged guide.

A channel of the playlist and a channel of a feed match if the id in the feed is the ``tvg-id``, or if a name
is equal after normalization (names.py) and no other channel of the feed has this name. Without a playlist,
the merged guide has the channels of all feeds. Channels of two feeds then match if their ids are equal and
they have a common name, or one of them has no name.

Ids such as "1" and names such as "Discovery Channel" mean different channels in different countries.
Therefore another feed fills gaps of the preferred feed only if its titles agree with the titles of the
preferred feed at times when both have programmes. Uncertain matches are proposed to the user (decisions.py).

MIN_AGREEMENT separates different channels from equal channels on six development guides (US1, ZA1, FR1, NL1,
NO1, GR1). Of 79 pairs of channels with equal names in two countries, 73 agree on at most .14 of the titles
(among them CNN and Arte, whose titles are in two languages) and six on at least .24. Five of the six are the
same channel (Mezzo .25, Rai Uno .34, Asharq News .43, TVE .61, Euronews .72), and Cartoon Network (.24) is
not. Of 29,958 random pairs with different names, 7 agree on .2 or more.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.merge.decisions import YES, Proposal
from tasks.merge.index import Channel, FeedIndex
from tasks.merge.names import SimilarNames, normalize, normalize_names, shift_hours_between
from tasks.merge.playlist import HOUR, PlaylistChannel

MIN_COMMON = 8  # minimum number of programmes in the time that both schedules cover, for comparing titles
MIN_AGREEMENT = 0.2  # minimum share of equal titles at equal times
SAME_START = HOUR // 6  # maximum difference of starts of compared programmes, in microseconds


@dataclass(frozen=True)
class TargetMember:
    """Channel of a feed that provides programmes of a channel of the merged guide."""

    feed: int  # index of the feed
    channel: Channel
    shift: int = 0  # microseconds that are added to the times of its programmes


@dataclass
class Target:
    """Channel of the merged guide, with the channels of feeds (members) that provide its programmes."""

    id: str
    names: tuple[str, ...]
    shift: int = 0  # microseconds that the playlist adds to the times of programmes
    members: list[TargetMember] = field(default_factory=list)  # channels of feeds, the preferred one first

    @property
    def keys(self) -> frozenset[str]:
        """Normalized names of the channel, which are compared with the names of channels of feeds."""
        return normalize_names(self.names)


@dataclass(frozen=True)
class Matching:
    """Channels of the merged guide (targets), in the order of the playlist or feeds, and proposed matches."""

    targets: list[Target]
    proposals: list[Proposal]  # proposed matches, also those that the user has confirmed or rejected


Decisions = Mapping[tuple[str, str, str], Proposal]  # answered proposals by key


class _Matcher:
    """Matches channels of feeds with channels of the merged guide (targets).

    A certain match, or a match that the user has confirmed in channels.csv, becomes a member of the target.
    Uncertain matches are collected as proposals, and rejected matches are ignored.
    """

    def __init__(self, feeds: Sequence[FeedIndex], decisions: Decisions) -> None:
        self.feeds, self.decisions = feeds, decisions
        self.proposals: dict[tuple[str, str, str], Proposal] = dict(decisions)
        self.confirmed_proposals: dict[str, list[Proposal]] = defaultdict(list)  # by target id
        for proposal in decisions.values():
            if proposal.use == YES:
                self.confirmed_proposals[proposal.id].append(proposal)
        self.feed_indices = {feed.source: index for index, feed in enumerate(feeds)}

    def answer(self, target: Target, feed_index: int, channel: Channel) -> str:
        """Returns the answer in channels.csv (yes, no or "") on using a channel of a feed for a target."""
        proposal = self.decisions.get((target.id, self.feeds[feed_index].source, channel.id))
        return proposal.use if proposal else ""

    def propose(self, target: Target, feed_index: int, channel: Channel, similarity: float) -> None:
        """Proposes a channel of a feed for a target, unless it has already been proposed."""
        hours = shift_hours_between(target.names, channel.names)
        proposal = Proposal(
            id=target.id,
            name=next(iter(target.names), ""),
            feed=self.feeds[feed_index].source,
            channel=channel.id,
            channel_name=next(iter(channel.names), ""),
            shift_hours=float(hours),
            similarity=round(similarity, 2),
        )
        self.proposals.setdefault(proposal.key, proposal)

    def add_confirmed_channels_(self, target: Target) -> None:
        """Adds to the members of a target the channels that the user has confirmed for it."""
        for proposal in self.confirmed_proposals[target.id]:
            index = self.feed_indices.get(proposal.feed, -1)
            if index >= 0 and (channel := self.feeds[index].channels.get(proposal.channel)):
                target.members.append(
                    TargetMember(index, channel, target.shift + round(proposal.shift_hours * HOUR))
                )

    def add_channel_(self, target: Target, feed_index: int, channel: Channel) -> None:
        """Adds a channel of a feed to the members of a target.

        If the titles of the channel differ from the titles of the target's first member, the channel is only
        proposed.
        """
        if self.answer(target, feed_index, channel):  # rejected, or confirmed and already added
            return
        if any(member.feed == feed_index for member in target.members):
            return
        if target.members:
            preferred_member = target.members[0]
            share = title_agreement(
                self.feeds[preferred_member.feed].rows_of(preferred_member.channel.id),
                self.feeds[feed_index].rows_of(channel.id),
                target.shift - preferred_member.shift,
            )
            if share is not None and share < MIN_AGREEMENT:
                self.propose(target, feed_index, channel, 1.0)
                return
        target.members.append(TargetMember(feed_index, channel, target.shift))


def match_playlist(
    feeds: Sequence[FeedIndex], playlist_channels: Sequence[PlaylistChannel], decisions: Decisions
) -> Matching:
    """Matches the channels of a playlist with the channels of ``feeds``, preferred feeds first."""
    matcher = _Matcher(feeds, decisions)
    targets = [Target(channel.id, channel.names, channel.shift) for channel in playlist_channels]
    finders = [_ChannelFinder(feed) for feed in feeds]
    for target in targets:
        matcher.add_confirmed_channels_(target)
        for feed_index, finder in enumerate(finders):
            matches = finder.find_channels(target)
            if len(matches) == 1:
                matcher.add_channel_(target, feed_index, matches[0])
            for channel in matches if len(matches) > 1 else ():
                if not matcher.answer(target, feed_index, channel):
                    matcher.propose(target, feed_index, channel, 1.0)
    _propose_similar(matcher, [target for target in targets if not target.members])
    ids = {target.id for target in targets}
    proposals = matcher.proposals.values()
    return Matching(targets, [proposal for proposal in proposals if proposal.use or proposal.id in ids])


class _ChannelFinder:
    """Finds the channels of a feed that may be a channel of the playlist, by id and by normalized name."""

    def __init__(self, feed: FeedIndex) -> None:
        self._by_id = feed.channels
        self._by_folded_id: dict[str, list[Channel]] = defaultdict(list)
        self._by_key: dict[str, list[Channel]] = defaultdict(list)
        for channel in feed.channels.values():
            self._by_folded_id[channel.id.casefold()].append(channel)
            for key in channel.keys:
                self._by_key[key].append(channel)

    def find_channels(self, target: Target) -> list[Channel]:
        """Returns the channels with the id of a target or, if there are none, with one of its names."""
        if exact_match := self._by_id.get(target.id):
            return [exact_match]
        if same_id := self._by_folded_id.get(target.id.casefold()):
            return same_id
        keys = sorted(target.keys | {normalize(target.id)})
        same_name = {channel.id: channel for key in keys for channel in self._by_key.get(key, ())}
        return list(same_name.values())


def _propose_similar(matcher: _Matcher, targets: Sequence[Target]) -> None:
    """Proposes channels of feeds with similar names for targets without a member."""
    if not targets:
        return
    channels = [
        (index, channel) for index, feed in enumerate(matcher.feeds) for channel in feed.channels.values()
    ]
    similar_names = SimilarNames({number: channel.names for number, (_, channel) in enumerate(channels)})
    for target in targets:
        for similarity, number in similar_names.find_similar(target.names or (target.id,)):
            feed_index, channel = channels[number]
            if not matcher.answer(target, feed_index, channel):
                matcher.propose(target, feed_index, channel, similarity)


def match_all(feeds: Sequence[FeedIndex], decisions: Decisions) -> Matching:
    """Matches the channels of all feeds without a playlist.

    If channels of two feeds have the same id but different names, a number is appended to the second id.

    Args:
        feeds: Feeds in order of preference.
        decisions: Answered proposals by key.
    """
    matcher = _Matcher(feeds, decisions)
    targets: dict[str, Target] = {}
    confirmed_channels = {(answer.feed, answer.channel) for answer in decisions.values() if answer.use == YES}
    for feed_index, feed in enumerate(feeds):
        for channel in feed.channels.values():
            if (feed.source, channel.id) in confirmed_channels:
                continue
            target = targets.get(channel.id)
            if target is not None:
                member_count = len(target.members)
                is_same_name = bool(channel.keys & target.keys) or not (channel.keys and target.keys)
                if is_same_name:
                    matcher.add_channel_(target, feed_index, channel)
                elif not matcher.answer(target, feed_index, channel):
                    matcher.propose(target, feed_index, channel, 1.0)
                if len(target.members) > member_count:
                    continue
            id_ = _find_free_id(channel.id, targets)
            targets[id_] = Target(id_, channel.names, 0, [TargetMember(feed_index, channel)])
    # The channel with the id of a confirmed proposal may be gone, with its feed or with a playlist.
    for id_, (proposal, *_) in matcher.confirmed_proposals.items():
        targets.setdefault(id_, Target(id_, (proposal.name,) if proposal.name else ()))
    for target in targets.values():
        matcher.add_confirmed_channels_(target)
    matched = [target for target in targets.values() if target.members]
    return Matching(matched, list(matcher.proposals.values()))


def _find_free_id(id_: str, targets: Mapping[str, Target]) -> str:
    """Returns ``id_`` if no target has it, else ``id_`` with the lowest free number, as in "one.2"."""
    free_id, number = id_, 1
    while free_id in targets:
        number += 1
        free_id = f"{id_}.{number}"
    return free_id


def title_agreement(first: np.ndarray, second: np.ndarray, shift: int = 0) -> float | None:
    """Returns the share of programmes of ``second`` for which ``first`` has the same title at the same time.

    Only programmes in the time that both schedules cover are compared.

    Args:
        first: Index rows (ROW_DTYPE) of a channel.
        second: Index rows of another channel.
        shift: Microseconds that are added to the times of ``second``.

    Returns:
        The share, or None if fewer than MIN_COMMON programmes can be compared.
    """
    if not len(first) or not len(second):
        return None
    starts = second["start"] + shift
    is_common = (starts >= first["start"][0]) & (starts <= first["start"][-1])
    if int(is_common.sum()) < MIN_COMMON:
        return None
    has_equal_title = np.zeros(int(is_common.sum()), dtype=bool)
    positions = np.searchsorted(first["start"], starts[is_common])
    for offset in (-1, 0, 1):
        near_rows = np.clip(positions + offset, 0, len(first) - 1)
        is_near = np.abs(first["start"][near_rows] - starts[is_common]) <= SAME_START
        has_equal_title |= is_near & (first["title"][near_rows] == second["title"][is_common])
    return float(has_equal_title.mean())
