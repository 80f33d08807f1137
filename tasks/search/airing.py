"""How a programme airs, as a person says it, as tokens of a title (storage/catalogue/contexts.py)."""

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence

ID, WORD = "channel:", "channel:word:"
_LETTERS = re.compile(r"[^\W\d_]{2,}")


class UnknownChannel(ValueError):
    """The guide has no such channel."""


def channel_tokens(names: Sequence[Sequence[str]], contexts: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Tokens of each channel, by its name and by its id, without regard to case.

    Titles have channels' names and, apart from them, the tokens of their ids: a name's id is the one that is
    on most of its titles and on fewest others (the largest Dice coefficient); of two that are always together
    (HD beside SD) the one that shares more words with the name.

    Args:
        names: Of the channels of each title.
        contexts: Tokens of how each title airs.
    """
    of_name, of_id, both = Counter(), Counter(), Counter()
    for own, context in zip(names, contexts, strict=True):
        ids = [token for token in context if token.startswith(ID) and not token.startswith(WORD)]
        of_name.update(own)
        of_id.update(ids)
        both.update((name, token) for name in own for token in ids)
    shares = {pair: 2 * count / (of_name[pair[0]] + of_id[pair[1]]) for pair, count in both.items()}
    rising = sorted(shares, key=lambda pair: (shares[pair], len(set(_words(pair[0])) & set(_words(pair[1])))))
    id_of, name_of = dict(rising), {token: name for name, token in rising}
    found = {token.removeprefix(ID): [token, *_words(name)] for token, name in name_of.items()}
    named = {name.casefold(): [*([id_of[name]] if name in id_of else []), *_words(name)] for name in of_name}
    return found | named


def find_channel(channels: Mapping[str, Sequence[str]], channel: str) -> Sequence[str]:
    """Tokens of a channel of ``channel_tokens``; UnknownChannel with near names where it is none."""
    if tokens := channels.get(channel.strip().casefold()):
        return tokens
    near = difflib.get_close_matches(channel.strip().casefold(), channels, n=5, cutoff=0.5)
    some = f"near it are {', '.join(near)}" if near else f"some are {', '.join(list(channels)[-5:])}"
    raise UnknownChannel(
        f"the guide has no channel {channel!r}; {some}" if channels else "the guide has no channels"
    )


def _words(name: str) -> list[str]:
    return [f"{WORD}{word}" for word in _LETTERS.findall(name.lower())]
