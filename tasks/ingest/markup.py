"""HTML left in text: character references resolved, tags taken out, in one pass whatever is nested in what.

Text is read as tokens onto a stack. A ``;`` or ``>`` looks back to its ``&`` or ``<``; what lies between
becomes a character, or a space where it is a tag, and is read like any other token. A look back ends at the
bracket before it, so each token is looked at twice at most: time is linear, where a loop of
``html.unescape`` takes a pass for each level of ``&amp;amp;…``.

Only HTML's own tags are tags, and only in one case: ``영화 <Parasite>`` and ``<Big>`` are text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from html.entities import html5

HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1b\x7f-\x84\x86-\x89\x8b-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u2064\u2066-\u206f\ufeff\ufffd\ud800-\udfff]"
)
_TOKEN = re.compile(r"([&;<>])")
_MARKUP = re.compile(r"&[#A-Za-z]|<[/A-Za-z]")
_NUMBER = re.compile(r"#(?:[0-9]{1,10}|[xX][0-9a-fA-F]{1,8})")
_LONGEST = {";": max(map(len, html5)), ">": 320}  # characters of a reference, of a tag
_OPENS = {";": "&", ">": "<"}
_LOOSE = re.compile(r"(?<!\S)&(amp|lt|gt|quot|nbsp)(?!\S)")  # without its semicolon, and no part of a word
_NOT_SEEN = str.maketrans("", "", "\u200c\u200d")
_TAG = re.compile(r"/?([A-Za-z]+[1-6]?)(?:\s[^=]*=.*|\s*/?\s*)", re.DOTALL)
_TAGS = frozenset(
    "a abbr acronym address b bdi bdo big blockquote body br center cite code dd del dfn div dl dt em "  # noqa: SIM905
    "embed font h1 h2 h3 h4 h5 h6 hr html i iframe img input ins kbd li nobr ol p pre q s samp script "
    "small span strike strong style sub sup table tbody td tfoot th thead tr tt u ul var wbr".split()
)


def without_markup(text: str) -> str:
    """The text with references to characters resolved and tags replaced by spaces, as often as there are any.

    Args:
        text: In NFC and without hidden characters; what a reference names comes out so too.
    """
    if _MARKUP.search(text) is None:
        return text
    stack: list[str] = []
    for token in _TOKEN.split(text):
        while (place := _opening(stack, token)) is not None:
            within = "".join(stack[place + 1 :]).translate(_NOT_SEEN)
            said = _character(within) if token == ";" else " " if _is_tag(within) else None
            if said is None:
                break
            del stack[place:]
            token = said
        if token:
            stack.append(token)
    return _LOOSE.sub(lambda reference: html5[reference[1]], "".join(stack))


def _opening(stack: list[str], token: str) -> int | None:
    """Where the bracket is that a token may close."""
    opens = _OPENS.get(token)
    if opens is None:
        return None
    left = _LONGEST[token]
    for place in range(len(stack) - 1, -1, -1):
        if stack[place] == opens:
            return place
        left -= len(stack[place])
        if left < 0 or stack[place] in ("<", ">", token):
            return None
    return None


def _character(name: str) -> str | None:
    """What ``&name;`` stands for."""
    if name + ";" not in html5 and not _NUMBER.fullmatch(name):
        return None
    return HIDDEN.sub("", unicodedata.normalize("NFC", html.unescape(f"&{name};")))


def _is_tag(within: str) -> bool:
    """Whether ``<within>`` is a tag: ``b``, ``/B``, ``br /``, ``a href=…``."""
    match = _TAG.fullmatch(within)
    return match is not None and match[1].lower() in _TAGS and (match[1].islower() or match[1].isupper())
