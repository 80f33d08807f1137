"""Converts channel names that users enter to context tokens, for queries such as "X, if it aired on BBC One".

Context tokens are the inputs of the model that describe how a title airs, such as "channel:bbc1.uk" for the
id of a channel and "channel:word:bbc" for a word of its name (tasks/tokenize/contexts.py).
"""

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence

ID_PREFIX, WORD_PREFIX = "channel:", "channel:word:"
_WORD = re.compile(r"[^\W\d_]{2,}")  # two or more letters


class UnknownChannel(ValueError):
    """Error: the TV guide has no channel with the requested name."""


def channel_tokens(names: Sequence[Sequence[str]], contexts: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Maps the name and the id of each channel to the context tokens of the channel.

    The names and the ids of the channels of a title are in separate lists. Names are matched with ids that
    occur with the same titles: a name gets the id with the largest Dice coefficient. If two ids always occur
    together (HD and SD), the id that has more words in common with the name is chosen.

    Args:
        names: Names of the channels that air each title.
        contexts: Context tokens of each title, which include the ids of the channels.

    Returns:
        A dictionary from case-folded channel names and from channel ids to context tokens.
    """
    name_counts, id_counts, pair_counts = Counter(), Counter(), Counter()
    for title_channels, context in zip(names, contexts, strict=True):
        tokens = [token for token in context if not token.startswith(WORD_PREFIX)]
        ids = [token for token in tokens if token.startswith(ID_PREFIX)]
        name_counts.update(title_channels)
        id_counts.update(ids)
        pair_counts.update((name, token) for name in title_channels for token in ids)

    def match_score(pair: tuple[str, str]) -> tuple[float, int]:
        dice = 2 * pair_counts[pair] / (name_counts[pair[0]] + id_counts[pair[1]])
        return dice, len(set(_word_tokens(pair[0])) & set(_word_tokens(pair[1])))

    ascending_pairs = sorted(pair_counts, key=match_score)  # so that the best pair of a name is the last
    id_of, name_of = dict(ascending_pairs), {token: name for name, token in ascending_pairs}
    tokens_by_id = {
        token.removeprefix(ID_PREFIX): [token, *_word_tokens(name)] for token, name in name_of.items()
    }
    id_tokens = {name: [id_of[name]] if name in id_of else [] for name in name_counts}
    return tokens_by_id | {name.casefold(): [*id_tokens[name], *_word_tokens(name)] for name in name_counts}


def find_channel(channels: Mapping[str, Sequence[str]], channel: str) -> Sequence[str]:
    """Returns the context tokens of a channel. The case of letters is ignored.

    Args:
        channels: Result of ``channel_tokens``.
        channel: Name or id of the channel, as entered by the user.

    Raises:
        UnknownChannel: No channel has this name or id; the message lists similar names.
    """
    if tokens := channels.get(channel.strip().casefold()):
        return tokens
    similar_names = difflib.get_close_matches(channel.strip().casefold(), channels, n=5, cutoff=0.5)
    suggestion = f"some of its channels are {', '.join(list(channels)[-5:])}"
    if similar_names:
        suggestion = f"similar names are {', '.join(similar_names)}"
    raise UnknownChannel(
        f"the guide has no channel {channel!r}; {suggestion}" if channels else "the guide has no channels"
    )


def _word_tokens(name: str) -> list[str]:
    return [f"{WORD_PREFIX}{word}" for word in _WORD.findall(name.lower())]


def channel_ids(context: Sequence[str]) -> frozenset[str]:
    """Returns the context tokens of a title that are ids of channels."""
    return frozenset(
        token for token in context if token.startswith(ID_PREFIX) and not token.startswith(WORD_PREFIX)
    )
