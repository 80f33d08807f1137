"""Repairs bytes of an XMLTV file before they are parsed: encoding, control bytes, character references."""

import re

import numpy as np

from tasks.ingest.encoding import Encoding

_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_NUMERIC_REFERENCE = re.compile(rb"&(#(?:x[0-9a-fA-F]{1,6}|[0-9]{1,7});)")
_XML_CHARACTER_RANGES = range(32, 0xD800), range(0xE000, 0xFFFE), range(0x10000, 0x110000)
CONTROL_BYTES = bytes(code for code in range(32) if code not in b"\t\n\r")


def repair(content: bytes, encoding: Encoding) -> tuple[bytes, int]:
    """Converts bytes to UTF-8, removes control bytes, and escapes each ``&`` that starts no valid reference.

    Returns:
        The repaired bytes, and the number of bytes that were invalid in the encoding of the feed.
    """
    content, invalid_count = encoding.decode(content)
    byte_values = np.frombuffer(content, dtype=np.uint8)
    space_count = sum(np.count_nonzero(byte_values == space) for space in b"\t\n\r")
    if np.count_nonzero(byte_values < 32) != space_count:
        content = content.translate(None, CONTROL_BYTES)
    if b"&#" in content:
        content = _NUMERIC_REFERENCE.sub(_escape_invalid_reference, content)
    return _BARE_AMPERSAND.sub(b"&amp;", content), invalid_count


def _escape_invalid_reference(reference: re.Match[bytes]) -> bytes:
    """Escapes the ``&`` of a numeric reference, unless the character is valid in XML.

    libxml2 would convert a reference to an invalid character to invalid UTF-8.
    """
    number = reference[1][1:-1]
    code = int(number[1:], 16) if number[:1] == b"x" else int(number)
    is_valid = code in (9, 10, 13) or any(code in code_range for code_range in _XML_CHARACTER_RANGES)
    return reference[0] if is_valid else b"&amp;" + reference[1]
