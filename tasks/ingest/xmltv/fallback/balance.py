"""Repairs the markup of a damaged XMLTV programme, using the content model of xmltv.dtd.

libxml2 can recover damaged XML, too, but it keeps an element open until its end tag: an unclosed ``<desc>``
would absorb the following elements, and a stray ``<us>`` in the name of an actor would turn the rest of the
programme into credits. Here, an XMLTV element ends where an element begins that it cannot contain. An unknown
tag without an end tag becomes text, an end tag without a start tag is removed, and attributes need no spaces
between them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from tasks.ingest.xmltv.prolog import ROOT_NAMES

_PEOPLE = "director actor writer adapter producer composer editor presenter commentator guest"
CHILDREN = {  # element -> elements that it may contain
    "tv": "channel programme",
    "channel": "display-name icon url lcn",
    "programme": "title sub-title desc credits date category keyword language orig-language length icon url "
    "country episode-num video audio previously-shown premiere last-chance new live subtitles rating "
    "star-rating review image",
    "credits": _PEOPLE,
    **dict.fromkeys(_PEOPLE.split(), "image url"),
    "video": "present colour aspect quality",
    "audio": "present stereo",
    "subtitles": "language",
    "rating": "value icon",
    "star-rating": "value icon",
}
PEOPLE = frozenset(_PEOPLE.split())
PARENTS: Mapping[str, frozenset[str]] = {  # element -> elements that may contain it
    child: frozenset(parent for parent, children in CHILDREN.items() if child in children.split())
    for child in " ".join(CHILDREN.values()).split()
}
_NAME = r"[A-Za-z_][\w.:-]*"
_TOKEN = re.compile(
    rf"<(?P<end>/?)(?P<name>{_NAME})"
    r"(?P<attributes>(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+|[^<>]*+)(?P<close>>|(?=<|\Z))"
    r"|(?P<cdata><!\[CDATA\[.*?\]\]>)|(?P<instruction><\?[^<>]*>)|<|\]\]>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(rf"""(?<![\w.:-])({_NAME}+)\s*+=\s*+(?:"([^"]*)"?|'([^']*)'?|([^\s"'/]+))""")


def balance(content: str) -> str:
    """Returns a damaged programme as well-formed XML, with the same line breaks."""
    head, end, tail = content.rpartition("]]>")
    content = head + end + tail.replace("<![CDATA[", "")  # a CDATA section in the tail is unterminated
    unknown_elements = set(_find_unknown_elements(_TOKEN.finditer(content)))
    parts: list[str] = []
    stack: list[str] = []
    depths = Counter[str]()  # number of open elements by name
    position = 0

    def close(name: str) -> None:
        """Closes the innermost element ``name`` and all elements in it."""
        while stack and (top := stack.pop()):
            depths[top] -= 1
            parts.append(f"</{top}>")
            if top == name:
                return

    for index, token in enumerate(_TOKEN.finditer(content)):
        parts.append(content[position : token.start()])
        position = token.end()
        name, text = _element_name(token), token[0]
        if token["cdata"]:
            parts.append(text)
        elif token["instruction"] or name in ROOT_NAMES:
            parts.append("\n" * text.count("\n"))
        elif name is None:
            parts.append(_escape(text))
        elif token["end"]:
            if depths[name]:
                close(name)
            parts.append("\n" * text.count("\n"))
        elif name not in PARENTS and not (index in unknown_elements and token["close"]):
            parts.append(_escape(text))
        else:
            parents = PARENTS.get(name, ())
            if any(depths[parent] for parent in parents):
                while stack[-1] not in parents:
                    close(stack[-1])
            elif "tv" in parents:
                while stack:
                    close(stack[-1])
            parts.append(_format_start_tag(name, token))
            if not _is_empty(token):
                stack.append(name)
                depths[name] += 1
    parts.append(content[position:])
    while stack:
        close(stack[-1])
    return "".join(parts)


def _find_unknown_elements(tokens: Iterator[re.Match[str]]) -> Iterator[int]:
    """Finds unknown elements that are closed before the next XMLTV tag; yields their start tags.

    A start tag is given by its index in ``tokens``.
    """
    stack: list[tuple[str, int]] = []
    depths = Counter[str]()
    for index, token in enumerate(tokens):
        name = _element_name(token)
        if name is None:
            continue
        if name in PARENTS or name in ROOT_NAMES:
            stack.clear()
            depths.clear()
        elif not token["end"]:
            if _is_empty(token):
                yield index
            else:
                stack.append((name, index))
                depths[name] += 1
        elif depths[name]:
            last_name, start = "", -1
            while last_name != name:
                last_name, start = stack.pop()
                depths[last_name] -= 1
            yield start


def _element_name(token: re.Match[str]) -> str | None:
    """Returns the name of a tag (in lower case for elements of XMLTV), or None for other tokens."""
    name = token["name"]
    return name.lower() if name and name.lower() in PARENTS else name


def _escape(text: str) -> str:
    return text.replace("<", "&lt;").replace("]]>", "]]&gt;")


def _is_empty(token: re.Match[str]) -> bool:
    return token["attributes"].rstrip().endswith("/")


def _format_start_tag(name: str, token: re.Match[str]) -> str:
    """Returns a well-formed start tag. If ``>`` is missing, the text after the attributes follows the tag.

    If an attribute is repeated, its first value is used.
    """
    values: dict[str, str] = {}
    attributes, end = token["attributes"], 0
    for match in _ATTRIBUTE.finditer(attributes):
        value = next(group for group in match.groups()[1:] if group is not None)
        values.setdefault(match[1], value.replace("<", "&lt;").replace('"', "&quot;"))
        end = match.end()
    text = "".join(f' {attribute}="{value}"' for attribute, value in values.items())
    remainder = "" if token["close"] else attributes[end:].lstrip()
    breaks = "\n" * max(0, attributes.count("\n") - text.count("\n") - remainder.count("\n"))
    return f"<{name}{text}{breaks}{'/' * _is_empty(token)}>{remainder}"
