r"""Detects the encoding of a feed and preserves invalid bytes.

UTF-8 is tried first, regardless of the declaration. The first invalid bytes trigger a count from the start
of the feed: it is damaged UTF-8 if it has at least as many valid multi-byte characters as invalid bytes.
Otherwise it is in the declared encoding, or in Windows-1252 if UTF-8 or nothing is declared. Text in another
encoding is mostly invalid as UTF-8 (nearly all of it in single-byte encodings, 80 % in GBK). A file that
mixes encodings is read in the more frequent one.

An invalid byte is represented by a private-use character, which passes the XML parser. ``clean`` drops it,
and ``show_invalid`` writes it as ``\xC3`` in texts that are stored unchanged.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

INVALID = 0x10FE00  # code point of byte 0; invalid bytes are 0x80 to 0xFF
SAMPLE_SIZE = 100_000  # multi-byte characters plus invalid bytes after which the count ends
_ESCAPED = re.compile("[\udc80-\udcff]")  # invalid bytes after surrogateescape
_INVALID = re.compile("[\U0010fe80-\U0010feff]")


class Encoding:
    """Encoding of one feed.

    Args:
        declared: Declared encoding, as the name of a Python codec.
        read_blocks: Reads the bytes of the feed from the start.
    """

    def __init__(self, declared: str, read_blocks: Callable[[], Iterable[bytes]] = tuple) -> None:
        self.declared, self._read_blocks = declared, read_blocks

    @cached_property
    def codec(self) -> str:
        """Encoding of bytes that are not valid UTF-8; found by reading the feed up to SAMPLE_SIZE."""
        valid = invalid = 0
        for block in self._read_blocks():
            valid_bytes = block.decode("utf-8", "ignore").encode()
            valid += int(np.count_nonzero(np.frombuffer(valid_bytes, np.uint8) >= 0xC0))
            invalid += len(block) - len(valid_bytes)
            if valid + invalid >= SAMPLE_SIZE:
                break
        if valid >= invalid:
            return "utf-8"
        return self.declared if self.declared != "utf-8" else "cp1252"

    @property
    def written(self) -> str:
        """Encoding for text that is inserted into the bytes read so far."""
        codec = self.__dict__.get("codec", "utf-8")  # absent while all bytes are valid UTF-8
        return self.declared if codec == "utf-8" else codec

    def decode(self, content: bytes) -> tuple[bytes, int]:
        """Returns the content in UTF-8 and the number of invalid bytes."""
        try:
            content.decode("utf-8")
            return content, 0
        except UnicodeDecodeError:
            pass
        try:
            text = content.decode(self.codec, "surrogateescape")
        except UnicodeDecodeError:  # a shift sequence of ISO 2022
            text = content.decode(self.codec, "replace")
        text, count = _ESCAPED.subn(lambda escaped: chr(ord(escaped[0]) - 0xDC00 + INVALID), text)
        return text.encode("utf-8", "replace"), count


def show_invalid(text: str, prefix: str = "\\x") -> str:
    r"""Replaces private-use characters of invalid bytes by text such as ``\xC3``."""
    if text.isascii():
        return text
    return _INVALID.sub(lambda character: f"{prefix}{ord(character[0]) - INVALID:02X}", text)
