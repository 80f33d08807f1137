"""Readings whose programmes DuckDB 2.0.0 lost, and catalogues that it wrote.

Under a memory limit it could not scan what a statement of the same transaction had inserted. A large reading of
a known source was then recorded as all duplicates, without a window: no other reading is. Its bytes do not count
as read, so that reading the feed again repairs it.
"""

from __future__ import annotations

# Of a row of ``feeds``, until the same bytes are read again.
LOST = """
    (seen > rejected AND stored = 0
     AND NOT EXISTS (FROM windows WHERE windows.feed_id = feeds.feed_id)
     AND NOT EXISTS (
        FROM feeds AS again
        WHERE again.source = feeds.source
          AND again.content_digest = feeds.content_digest
          AND again.feed_id > feeds.feed_id
     ))
"""
# What a connection says of a file with a newer storage version.
NEWER_FILE = "created with a newer version of DuckDB"
CARRY_OVER = (
    "docs/catalogue.md has the command that rewrites it, under 'A catalogue of DuckDB 2'; "
    "or name another --home and read the feeds again"
)
