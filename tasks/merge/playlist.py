"""Reads M3U playlists of IPTV channels.

Attributes are read as by Kodi's add-on pvr.iptvsimple: ``tvg-id`` is the id of a channel in the guide,
``tvg-name`` or the text after the comma is its name, and ``tvg-shift`` is the number of hours that are added
to the times of its programmes. The ``tvg-shift`` of the line ``#EXTM3U`` applies to channels without
``tvg-shift``. The case of attribute names is ignored.
"""

import codecs
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.ingest.xmltv.text import CONTROL_BYTES
from tasks.merge.errors import MergeError

MAX_BYTES = 64 << 20  # maximum size of a playlist
HOUR = 3_600_000_000  # microseconds
_MAX_HOURS = 48.0  # maximum absolute value of tvg-shift
_ATTRIBUTE = re.compile(r"""([\w-]+)=("[^"]*"|'[^']*'(?=[\s,]|$)|[^\s,"]*)""")
_EXTINF = "#EXTINF:"


@dataclass(frozen=True)
class PlaylistChannel:
    """Channel of a playlist.

    Attributes:
        id: Id by which players find the channel in the guide: ``tvg-id``, else ``tvg-name``, else the title.
        names: Distinct names, from ``tvg-name`` and the title.
        shift: Microseconds that are added to the times of the channel's programmes.
    """

    id: str
    names: tuple[str, ...]
    shift: int = 0


def read_playlist(path: Path) -> tuple[list[PlaylistChannel], list[str]]:
    """Reads the channels of a playlist, one per id.

    Channels with the same id are merged, because players cannot distinguish them. If their shifts differ, no
    shift is applied.

    Returns:
        The channels in the order of the file, and warnings.

    Raises:
        MergeError: The file cannot be read, or it has no channel.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise MergeError(f"{path}: larger than {MAX_BYTES:,} bytes; expected an M3U playlist")
        content = path.read_bytes()
    except OSError as error:
        raise MergeError(f"{path}: cannot be read ({error.strerror}); expected an M3U playlist") from error
    channels: dict[str, PlaylistChannel] = {}
    warnings = []
    for channel in parse_playlist(_decode(content)):
        if (previous := channels.get(channel.id)) is None:
            channels[channel.id] = channel
            continue
        if previous.shift != channel.shift:
            shifts = " and ".join(f"{shift / HOUR:+g}" for shift in (previous.shift, channel.shift))
            warnings.append(f"{path}: id {channel.id!r} has the shifts {shifts} hours; none is applied")
        channels[channel.id] = PlaylistChannel(
            channel.id,
            names=_distinct_names(*previous.names, *channel.names),
            shift=channel.shift if previous.shift == channel.shift else 0,
        )
    if not channels:
        raise MergeError(f'{path}: no channel; expected lines such as #EXTINF:-1 tvg-id="BBC1.uk",BBC One')
    return list(channels.values()), warnings


def parse_playlist(text: str) -> Iterator[PlaylistChannel]:
    """Yields the channel of each ``#EXTINF`` line that has an id or a name."""
    default_shift = 0
    for line in text.splitlines():
        line = line.strip()
        if line[:7].upper() == "#EXTM3U":
            default_shift = _parse_shift(_parse_attributes(line[7:])[0].get("tvg-shift", ""), 0)
        elif line[: len(_EXTINF)].upper() == _EXTINF:
            attributes, title = _parse_attributes(line[len(_EXTINF) :])
            names = _distinct_names(attributes.get("tvg-name", ""), title)
            id_ = attributes.get("tvg-id", "") or next(iter(names), "")
            if id_:
                yield PlaylistChannel(
                    id_, names, _parse_shift(attributes.get("tvg-shift", ""), default_shift)
                )


def _parse_attributes(line: str) -> tuple[dict[str, str], str]:
    """Returns the attributes of a line, and the title after the comma that follows the last attribute."""
    attributes, end = {}, 0
    for match in _ATTRIBUTE.finditer(line):
        if "," in line[end : match.start()]:
            break  # the match is in the title: "Channel,Name a=b"
        value = match[2]
        is_quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
        attributes[match[1].lower()] = (value[1:-1] if is_quoted else value).strip()
        end = match.end()
    return attributes, line[end:].partition(",")[2].strip()


def _parse_shift(text: str, default: int) -> int:
    """Converts hours to microseconds. Returns ``default`` if the text is not a number from -48 to 48."""
    try:
        hours = float(text.replace(",", "."))
    except ValueError:
        return default
    return round(hours * HOUR) if math.isfinite(hours) and abs(hours) <= _MAX_HOURS else default


def _distinct_names(*names: str) -> tuple[str, ...]:
    """Returns the distinct names that are not empty."""
    return tuple(dict.fromkeys(filter(None, names)))


def _decode(content: bytes) -> str:
    """Decodes UTF-8, with or without a byte order mark; content that is invalid in UTF-8 is Windows-1252."""
    content = content.removeprefix(codecs.BOM_UTF8).translate(None, CONTROL_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")
