r"""Detects the character encoding of a feed, and preserves bytes that are invalid in this encoding.

UTF-8 is tried first, regardless of the declared encoding. At the first byte that is invalid in UTF-8, valid
multi-byte characters and invalid bytes are counted from the start of the feed. If at least as many characters
are valid as bytes are invalid, the feed is damaged UTF-8. Otherwise it is in the declared encoding, or in
Windows-1252 if UTF-8 or nothing is declared. This works because non-ASCII text in another encoding is mostly
invalid in UTF-8 (nearly all of it in single-byte encodings, 80 % in GBK).

Each invalid byte is replaced by a private-use character, which XML parsers accept. ``clean`` removes the
character, and ``show_invalid`` writes it as ``\xC3`` in texts that are stored without cleaning.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

INVALID = 0x10FE00  # code point INVALID + b replaces the invalid byte b (0x80 to 0xFF)
SAMPLE_SIZE = 100_000  # number of multi-byte characters and invalid bytes after which counting ends
_SURROGATES = re.compile("[\udc80-\udcff]")  # invalid bytes as Python's "surrogateescape" decodes them
PLACEHOLDERS = re.compile("[\U0010fe80-\U0010feff]")  # private-use characters that replace invalid bytes


class Encoding:
    """Decodes the bytes of one feed. The encoding is detected at the first byte that is invalid in UTF-8.

    Args:
        declared: Encoding that the feed declares, as the name of a Python codec.
        read_blocks: Function that returns the blocks of bytes of the feed from the start.
    """

    def __init__(self, declared: str, read_blocks: Callable[[], Iterable[bytes]] = tuple) -> None:
        self.declared, self._read_blocks = declared, read_blocks

    @cached_property
    def codec(self) -> str:
        """The codec for bytes that are not valid UTF-8. Reads the feed to detect it."""
        valid_count = invalid_count = 0
        for block in self._read_blocks():
            valid_bytes = block.decode("utf-8", "ignore").encode()
            valid_count += int(np.count_nonzero(np.frombuffer(valid_bytes, np.uint8) >= 0xC0))
            invalid_count += len(block) - len(valid_bytes)
            if valid_count + invalid_count >= SAMPLE_SIZE:
                break
        if valid_count >= invalid_count:
            return "utf-8"
        return self.declared if self.declared != "utf-8" else "cp1252"

    @property
    def insertion_codec(self) -> str:
        """The codec in which text must be encoded before it is inserted into the bytes of the feed."""
        codec = self.__dict__.get("codec", "utf-8")  # absent while all bytes are valid UTF-8
        return self.declared if codec == "utf-8" else codec

    def decode(self, content: bytes) -> tuple[bytes, int]:
        """Returns bytes of the feed, converted to UTF-8, and the number of invalid bytes among them."""
        try:
            content.decode("utf-8")
            return content, 0
        except UnicodeDecodeError:
            pass
        try:
            text = content.decode(self.codec, "surrogateescape")
        except UnicodeDecodeError:  # a shift sequence of ISO 2022
            text = content.decode(self.codec, "replace")
        text, count = _SURROGATES.subn(lambda escaped: chr(ord(escaped[0]) - 0xDC00 + INVALID), text)
        return text.encode("utf-8", "replace"), count


def show_invalid(text: str, prefix: str = "\\x") -> str:
    r"""Replaces private-use characters that stand for invalid bytes by text such as ``\xC3``."""
    if text.isascii():
        return text
    return PLACEHOLDERS.sub(lambda character: f"{prefix}{ord(character[0]) - INVALID:02X}", text)
