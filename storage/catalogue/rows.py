"""The columns in which a feed's content arrives: what the parser makes and the ledger takes."""

from __future__ import annotations

import pyarrow as pa

STRINGS = pa.list_(pa.string())
VALUES = pa.list_(pa.struct([("system", pa.string()), ("value", pa.string())]))
PROGRAMMES = pa.schema(
    [
        ("channel", pa.string()),
        ("start", pa.timestamp("us")),
        ("stop", pa.timestamp("us")),
        ("stop_note", pa.string()),
        ("title", pa.string()),
        ("title_language", pa.string()),
        ("sub_title", pa.string()),
        ("categories", STRINGS),
        ("episode_numbers", STRINGS),
        ("episode_systems", STRINGS),
        ("date", pa.string()),
        ("extra", pa.string()),  # JSON (tasks/ingest/extra.py)
    ]
)
# ``row`` of these two: the programme's row in the batch they come with.
DETAILS = pa.schema(
    [
        ("row", pa.int64()),
        ("description", pa.string()),
        ("translations", pa.list_(pa.struct([("element", pa.string()), ("text", pa.string()), ("language", pa.string())]))),
        ("keywords", STRINGS),
        ("credits", pa.list_(pa.struct([("role", pa.string()), ("name", pa.string()), ("character", pa.string())]))),
        ("is_new", pa.bool_()),
        ("is_premiere", pa.bool_()),
        ("is_live", pa.bool_()),
        ("previously_shown", pa.bool_()),
        ("previously_shown_at", pa.timestamp("us")),
        ("star_ratings", VALUES),
        ("ratings", VALUES),
        ("length_minutes", pa.float64()),
        ("language", pa.string()),
        ("original_language", pa.string()),
        ("countries", STRINGS),
        ("icon", pa.string()),
        ("urls", STRINGS),
    ]
)
ORIGINALS = pa.schema([("row", pa.int64()), ("element", pa.string()), ("text", pa.string())])
CHANNELS = pa.schema(
    [
        ("channel", pa.string()),
        ("name", pa.string()),
        ("names", STRINGS),
        ("icon", pa.string()),
        ("lcn", pa.string()),
        ("urls", STRINGS),
        ("extra", pa.string()),
    ]
)
ROOT = pa.schema([("attribute", pa.string()), ("value", pa.string())])
REJECTS = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("excerpt", pa.string())])
