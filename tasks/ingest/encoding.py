r"""The encoding of a feed's bytes, and bytes that are invalid in it.

UTF-8 is tried first whatever a feed declares. At the first bytes that are not UTF-8 the whole feed decides:
it is UTF-8 with damage if it has at least as many valid multi-byte characters as invalid bytes, else it is in
its declared encoding, or in Windows-1252 if it declares none other than UTF-8. Text in another encoding is
mostly invalid as UTF-8 (nearly all of it in single-byte encodings, four fifths in GBK), damaged UTF-8 mostly
valid. Of a file that mixes encodings the more frequent one is read.

An invalid byte becomes a character of a private-use plane that no guide uses, so that it passes the parser:
``clean`` drops it, and ``show_invalid`` writes it as ``\xC3`` wherever a text is kept as it was.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

INVALID = 0x10FE00  # plus the byte, 0x80 to 0xFF
SAMPLE = 100_000  # multi-byte characters and invalid bytes that decide
_ESCAPED = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of invalid bytes
_CARRIED = re.compile("[\U0010fe80-\U0010feff]")


class Encoding:
    """The encoding of one feed.

    Args:
        declared: Python's name of the declared encoding.
        read_blocks: Reads the feed's bytes from the start.
    """

    def __init__(self, declared: str, read_blocks: Callable[[], Iterable[bytes]] = tuple) -> None:
        self.declared, self._read_blocks = declared, read_blocks

    @cached_property
    def codec(self) -> str:
        """The encoding of bytes that are not valid UTF-8; reads the feed, up to SAMPLE observations."""
        valid = invalid = 0
        for block in self._read_blocks():
            kept = block.decode("utf-8", "ignore").encode()
            valid += int(np.count_nonzero(np.frombuffer(kept, np.uint8) >= 0xC0))
            invalid += len(block) - len(kept)
            if valid + invalid >= SAMPLE:
                break
        if valid >= invalid:
            return "utf-8"
        return self.declared if self.declared != "utf-8" else "cp1252"

    @property
    def written(self) -> str:
        """The encoding in which text may be added to the bytes read so far."""
        codec = self.__dict__.get("codec", "utf-8")  # absent while all bytes are valid UTF-8
        return self.declared if codec == "utf-8" else codec

    def decode(self, content: bytes) -> tuple[bytes, int]:
        """The content in UTF-8, and the number of its invalid bytes."""
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
    r"""The text with each invalid byte written as ``\xC3``."""
    if text.isascii():
        return text
    return _CARRIED.sub(lambda carried: f"{prefix}{ord(carried[0]) - INVALID:02X}", text)
