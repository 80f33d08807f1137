"""Reads and writes ``channels.csv``, the table in which a user confirms or rejects similar channels.

The columns are ``id`` and ``name`` of a channel of the merged guide; ``feed``, ``channel`` and
``channel_name`` of a similar channel in a feed; ``shift_hours``, the number of hours that are added to the
times of the feed; ``similarity`` of the names; and ``use``, which is empty until the user writes ``yes`` or
``no``. Each merge keeps the rows that the user has answered, and replaces all other rows.
"""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from storage.json_file import write_text
from tasks.merge.errors import MergeError

TABLE_NAME = "channels.csv"
YES, NO = "yes", "no"


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Row of channels.csv: a proposal to use a channel of a feed for a channel of the merged guide."""

    id: str  # id of the channel of the merged guide
    name: str  # name of the channel of the merged guide
    feed: str  # name of the feed
    channel: str  # id of the channel in the feed
    channel_name: str  # name of the channel in the feed
    shift_hours: float = 0.0  # hours to add to the times of the feed
    similarity: float = 1.0  # similarity of the names, 0 to 1
    use: str = ""  # answer of the user: yes, no, or "" for none

    @property
    def key(self) -> tuple[str, str, str]:
        """Key of the row: channel id in the merged guide, name of the feed, and channel id in the feed."""
        return self.id, self.feed, self.channel


_COLUMNS = [column.name for column in fields(Proposal)]
_TEXT_COLUMNS = ("id", "name", "feed", "channel", "channel_name")
_NUMBER_COLUMNS = ("shift_hours", "similarity")


def read_decisions(file: Path) -> dict[tuple[str, str, str], Proposal]:
    """Reads the rows of channels.csv that the user has answered. Returns them by key; {} without a file.

    Raises:
        MergeError: A column is missing, or a value is invalid.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")  # Excel writes a byte order mark
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise MergeError(f"{file}: cannot be read ({error}); expected CSV in UTF-8") from error
    header = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=";" if header.count(";") > header.count(",") else ",")
    if missing_columns := [
        name for name in ("id", "feed", "channel", "use") if name not in (rows.fieldnames or ())
    ]:
        raise MergeError(f"{file} has no columns {', '.join(missing_columns)}; remove the file to start anew")
    decisions = {}
    for row in rows:
        use = (row["use"] or "").strip().lower()
        if use not in ("", YES, NO):
            raise MergeError(f"{file}, line {rows.line_num}: use is {use!r}; expected yes, no or nothing")
        if not use:
            continue
        try:
            hours, similarity = (float((row.get(name) or "0").replace(",", ".")) for name in _NUMBER_COLUMNS)
            if not math.isfinite(hours):
                raise ValueError(f"shift_hours is {hours}")
        except ValueError as error:
            raise MergeError(f"{file}, line {rows.line_num}: {error}; expected hours such as -0.5") from error
        texts = {name: row.get(name) or "" for name in _TEXT_COLUMNS}
        decision = Proposal(**texts, shift_hours=hours, similarity=similarity, use=use)
        decisions[decision.key] = decision
    return decisions


def write_table(file: Path, rows: Iterable[Proposal]) -> None:
    """Writes channels.csv if its content changes. Removes the file if there are no rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    sorted_rows = sorted(rows, key=lambda row: (row.id, -row.similarity, row.feed, row.channel))
    for row in sorted_rows:
        values = [f"{value:g}" if isinstance(value, float) else value for value in vars(row).values()]
        writer.writerow(values)
    if not sorted_rows:
        file.unlink(missing_ok=True)
    elif not file.exists() or file.read_text(encoding="utf-8-sig") != text.getvalue():
        write_text(file, text.getvalue())
