"""The common form of an XMLTV time, ``YYYYMMDDhhmmss +hhmm``, a column at a time; every other one goes to times.py.

A month of a guide has some 9,000 distinct times, each on hundreds of channels: one by one they take 0.1 s of a guide's 1.5 s.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tasks.ingest.times import FIRST_YEAR, LAST_YEAR, parse_time

WIDTH = 20
_DIGITS = [place for place in range(WIDTH) if place not in (14, 15)]


def parse_times(texts: pa.StringArray, zone: str) -> pa.Array:
    """``parse_time`` of each text, as int64; null where it is none.

    Args:
        texts: Without nulls.
        zone: Of those that name none.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1] if len(texts) else np.zeros(1, np.int32)
    common = np.flatnonzero(np.diff(offsets) == WIDTH)
    found = np.zeros(len(texts), np.int64)
    known = np.zeros(len(texts), bool)
    if len(common):
        content = np.frombuffer(texts.buffers()[2], np.uint8)
        codes = content[offsets[common][:, None] + np.arange(WIDTH)]  # texts, WIDTH
        found[common], known[common] = _parse(codes)
    rest = np.flatnonzero(~known)
    for row in rest:
        time = parse_time(texts[row].as_py(), zone)
        if time is not None:
            found[row], known[row] = time, True
    return pa.array(found, pa.int64(), mask=~known)


def _parse(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds, and whether they hold, of rows of character codes; what is doubtful does not hold."""
    digits = codes.astype(np.int64) - ord("0")

    def number(first: int, last: int) -> np.ndarray:
        return digits[:, first:last] @ (10 ** np.arange(last - first - 1, -1, -1))

    year, month, day, hour, minute, second = (number(*span) for span in ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14)))
    east = number(16, 18) * 60 + number(18, 20)
    sound = (digits[:, _DIGITS] >= 0).all(1) & (digits[:, _DIGITS] <= 9).all(1) & (codes[:, 14] == ord(" ")) & np.isin(codes[:, 15], (ord("+"), ord("-")))
    sound &= (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 60)
    east = np.where(codes[:, 15] == ord("-"), -east, east)
    sound &= (east >= -12 * 60) & (east <= 14 * 60) & (number(18, 20) < 60)
    months = np.where(sound, (year - 1970) * 12 + month - 1, 0)
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    sound &= day <= (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) - days
    return ((days + day - 1) * 86_400 + hour * 3600 + minute * 60 + second - east * 60) * 1_000_000, sound
