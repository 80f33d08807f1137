"""Parses the programmes and channels of an XMLTV file, with their positions in the file.

The file is split into frames of about 400 KiB (frames.py). The bytes of each frame are repaired (text.py),
read by the fast scanner (scan.py) or by the XML parser (fallback/), and cleaned (columns.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
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
from tasks.ingest.xmltv.text import CONTROL_BYTES, repair
from tasks.ingest.xmltv.times import parse_time

NO_PROGRAMMES = clean_columns(RawColumns.from_rows([]), partial(parse_time, zone=""))


@dataclass(kw_only=True)
class FrameRecords:
    """Programmes and channels of a frame (a part of the file with complete programmes).

    Attributes:
        frame: Bytes of the frame as in the file.
        chunk: Cleaned columns of the valid programmes.
        programme_indices: Index of each valid programme among all programmes of the frame; -1 if
            the position is ambiguous.
        channels: Rows with the schema CHANNELS (storage/catalogue/rows.py).
        rejects: Line, reason and excerpt of each invalid programme.
        invalid_bytes: Number of bytes that are invalid in the encoding of the feed.
    """

    frame: Frame
    chunk: ColumnChunk = NO_PROGRAMMES
    programme_indices: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    channels: list[tuple[Any, ...]] = field(default_factory=list)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)
    invalid_bytes: int = 0

    def find_spans(self) -> tuple[np.ndarray, int]:
        """Finds the valid programmes in the bytes of the frame.

        Returns:
            Begin and end of each valid programme, int64 (programmes, 2), which are -1 if its position is
            ambiguous or the end tag is missing; and the number of programmes in the frame that have an end
            tag, including invalid programmes.
        """
        spans = np.array([*find_programmes(self.frame.content), (-1, -1)])
        spans[spans[:, 1] < 0] = -1
        return spans[self.programme_indices], int((spans[:, 1] >= 0).sum())


def read_records(
    prolog: Prolog, blocks: Iterator[bytes], encoding: Encoding, zone: str
) -> Iterator[FrameRecords]:
    """Parses a file frame by frame, and yields the programmes and channels of each frame.

    Args:
        prolog: Prolog of the file.
        blocks: Blocks of bytes after the prolog.
        encoding: Encoding of the bytes.
        zone: Time zone of the times without an offset; empty means UTC.
    """
    for frame in cut_frames(blocks, prolog.length, prolog.lines + 1, prolog.is_closed):
        records = FrameRecords(frame=frame)
        if frame.reason:
            text = excerpt(frame.content.translate(None, CONTROL_BYTES))
            records.rejects.append((frame.line, frame.reason, text))
        else:
            _read_frame_(records, encoding, zone)
        yield records


def _read_frame_(records: FrameRecords, encoding: Encoding, zone: str) -> None:
    """Repairs and reads the frame in ``records``, and fills the other fields of ``records`` in place."""
    content, records.invalid_bytes = repair(records.frame.content, encoding)
    raw = scan(content)
    if raw is None:
        raw = _parse_xml_(records, content, zone)
    else:
        records.programme_indices = np.arange(len(raw.title))
    records.chunk = clean_columns(raw, partial(parse_time, zone=zone))
    if reasons := records.chunk.reasons:
        trees = (
            (tree, line) for tree, _, line in parse_trees(content, records.frame.line) if tree is not None
        )
        programmes = ((element, line) for tree, line in trees for element in tree.iter("programme"))
        for row, (element, line) in enumerate(programmes):
            if row in reasons:
                text = etree.tostring(element, encoding="utf-8", with_tail=False)
                records.rejects.append((line + (element.sourceline or 1) - 1, reasons[row], excerpt(text)))
        records.programme_indices = np.delete(records.programme_indices, list(reasons))


def _parse_xml_(records: FrameRecords, content: bytes, zone: str) -> RawColumns:
    """Parses repaired bytes as XML. Returns programmes, and fills other fields of ``records`` in place."""
    rows: list[dict[str, Any]] = []
    indices: list[int] = []
    first_index = 0  # index of the first programme in the piece
    for tree, piece, line in parse_trees(content, records.frame.line):
        piece_count = len(find_programmes(piece))
        if tree is None:
            records.rejects.append((line, "malformed", excerpt(piece)))
        else:
            read_tree(tree, rows, records.channels, zone)
            new_rows = len(rows) - len(indices)
            is_complete = new_rows == piece_count
            indices += range(first_index, first_index + new_rows) if is_complete else [-1] * new_rows
        first_index += piece_count
    # the repair may have removed a control byte from a tag
    if first_index != len(find_programmes(records.frame.content)):
        indices = [-1] * len(rows)
    records.programme_indices = np.array(indices, dtype=np.int64)
    return RawColumns.from_rows(rows)
