"""Reads the programmes and channels of an XMLTV file with their positions, for ingest and for enrich.

The steps: cut the file into frames (frames.py), repair their bytes (text.py), read them with the scanner
(scan.py) or the parser (fallback/), and clean the columns (columns.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import lxml.etree as etree
import numpy as np

from tasks.ingest.batches import excerpt
from tasks.ingest.columns import ColumnChunk, RawColumns, clean_columns
from tasks.ingest.encoding import Encoding
from tasks.ingest.xmltv.fallback.elements import parse_trees
from tasks.ingest.xmltv.fallback.programmes import read_tree
from tasks.ingest.xmltv.frames import Frame, cut_frames, find_programmes
from tasks.ingest.xmltv.prolog import Prolog
from tasks.ingest.xmltv.scan import scan
from tasks.ingest.xmltv.text import CONTROLS, repair
from tasks.ingest.xmltv.times import parse_time

NO_PROGRAMMES = clean_columns(RawColumns.from_rows([]), partial(parse_time, zone=""))


@dataclass(frozen=True, kw_only=True)
class Records:
    """Content of a frame.

    Attributes:
        frame: The frame as in the file.
        chunk: The valid programmes.
        numbers: Number of each valid programme within the frame, -1 if ambiguous.
        channels: Rows of CHANNELS.
        rejects: Line, reason and excerpt of each invalid programme.
        invalid_bytes: Bytes that are invalid in the encoding of the feed.
    """

    frame: Frame
    chunk: ColumnChunk
    numbers: np.ndarray
    channels: list[tuple[Any, ...]]
    rejects: list[tuple[int, str, str]]
    invalid_bytes: int = 0

    def find_spans(self) -> tuple[np.ndarray, int]:
        """Finds begin and end of each valid programme in the frame, int64 (programmes, 2).

        Returns:
            The spans, -1 for a programme that is ambiguous or has no end tag; and the number of complete
            programmes in the frame, invalid ones included.
        """
        spans = np.array([*find_programmes(self.frame.content), (-1, -1)])
        spans[spans[:, 1] < 0] = -1
        return spans[self.numbers], int((spans[:, 1] >= 0).sum())


def read_records(prolog: Prolog, blocks: Iterator[bytes], encoding: Encoding, zone: str) -> Iterator[Records]:
    """Yields the records of each frame of a file.

    Args:
        prolog: Head of the file.
        blocks: Bytes after the head.
        zone: Zone of times without one; empty means UTC.
    """
    for frame in cut_frames(blocks, prolog.length, prolog.lines + 1, prolog.ended):
        yield _reject(frame) if frame.reason else _read(frame, encoding, zone)


def _reject(frame: Frame) -> Records:
    rejects = [(frame.line, frame.reason, excerpt(frame.content.translate(None, CONTROLS)))]
    return Records(
        frame=frame, chunk=NO_PROGRAMMES, numbers=np.zeros(0, np.int64), channels=[], rejects=rejects
    )


def _read(frame: Frame, encoding: Encoding, zone: str) -> Records:
    content, invalid_bytes = repair(frame.content, encoding)
    channels: list[tuple[Any, ...]] = []
    rejects: list[tuple[int, str, str]] = []
    raw = scan(content)
    if raw is not None:
        numbers = np.arange(len(raw.title))
    else:
        raw, numbers = _parse(frame, content, channels, rejects, zone)
    chunk = clean_columns(raw, partial(parse_time, zone=zone))
    if chunk.reasons:
        trees = ((tree, begin) for tree, begin, _ in parse_trees(content) if tree is not None)
        programmes = ((element, begin) for tree, begin in trees for element in tree.iter("programme"))
        for row, (element, begin) in enumerate(programmes):
            if row in chunk.reasons:
                line = frame.line + content.count(b"\n", 0, begin) + (element.sourceline or 1) - 1
                text = etree.tostring(element, encoding="utf-8", with_tail=False)
                rejects.append((line, chunk.reasons[row], excerpt(text)))
        numbers = np.delete(numbers, list(chunk.reasons))
    return Records(
        frame=frame,
        chunk=chunk,
        numbers=numbers,
        channels=channels,
        rejects=rejects,
        invalid_bytes=invalid_bytes,
    )


def _parse(
    frame: Frame,
    content: bytes,
    channels: list[tuple[Any, ...]],
    rejects: list[tuple[int, str, str]],
    zone: str,
) -> tuple[RawColumns, np.ndarray]:
    """Parses a repaired frame; returns its programmes with their numbers within the frame."""
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    first = 0
    for tree, begin, end in parse_trees(content):
        count = len(find_programmes(content[begin:end]))
        if tree is None:
            line = frame.line + content.count(b"\n", 0, begin)
            rejects.append((line, "malformed", excerpt(content[begin:end])))
        else:
            read_tree(tree, rows, channels, zone)
            parsed = len(rows) - len(numbers)
            numbers += range(first, first + count) if parsed == count else [-1] * parsed
        first += count
    if first != len(find_programmes(frame.content)):  # the repair removed a control byte from a tag
        numbers = [-1] * len(rows)
    return RawColumns.from_rows(rows), np.array(numbers, dtype=np.int64)
