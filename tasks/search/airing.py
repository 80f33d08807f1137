"""Converts channel names typed by users to context tokens of titles (tasks/tokenize/contexts.py)."""

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence

ID, WORD = "channel:", "channel:word:"
_LETTERS = re.compile(r"[^\W\d_]{2,}")


class UnknownChannel(ValueError):
    """The guide has no channel of this name."""


def channel_tokens(names: Sequence[Sequence[str]], contexts: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Maps each channel name and channel id, case-folded, to the tokens of the channel.

    Titles list channel names and tokens of channel ids separately. A name is matched with the id that occurs
    with it most consistently (largest Dice coefficient over titles). Of two ids that always occur together
    (HD and SD), the one that shares more words with the name is chosen.

    Args:
        names: Channel names of each title.
        contexts: Context tokens of each title.
    """
    name_counts, id_counts, pair_counts = Counter(), Counter(), Counter()
    for title_channels, context in zip(names, contexts, strict=True):
        ids = [token for token in context if token.startswith(ID) and not token.startswith(WORD)]
        name_counts.update(title_channels)
        id_counts.update(ids)
        pair_counts.update((name, token) for name in title_channels for token in ids)

    def match_score(pair: tuple[str, str]) -> tuple[float, int]:
        dice = 2 * pair_counts[pair] / (name_counts[pair[0]] + id_counts[pair[1]])
        return dice, len(set(_word_tokens(pair[0])) & set(_word_tokens(pair[1])))

    ascending = sorted(pair_counts, key=match_score)
    id_of, name_of = dict(ascending), {token: name for name, token in ascending}
    tokens_by_id = {token.removeprefix(ID): [token, *_word_tokens(name)] for token, name in name_of.items()}
    ids = {name: [id_of[name]] if name in id_of else [] for name in name_counts}
    return tokens_by_id | {name.casefold(): [*ids[name], *_word_tokens(name)] for name in name_counts}


def find_channel(channels: Mapping[str, Sequence[str]], channel: str) -> Sequence[str]:
    """Looks up the tokens of a channel in ``channel_tokens``.

    Raises:
        UnknownChannel: There is no such channel; the message lists similar names.
    """
    if tokens := channels.get(channel.strip().casefold()):
        return tokens
    near = difflib.get_close_matches(channel.strip().casefold(), channels, n=5, cutoff=0.5)
    suggestion = f"near it are {', '.join(near)}" if near else f"some are {', '.join(list(channels)[-5:])}"
    raise UnknownChannel(
        f"the guide has no channel {channel!r}; {suggestion}" if channels else "the guide has no channels"
    )


def _word_tokens(name: str) -> list[str]:
    return [f"{WORD}{word}" for word in _LETTERS.findall(name.lower())]
