-- Number of bytes that are invalid in the encoding of the feed (tasks/ingest/encoding.py). They are removed from texts
-- and kept in originals.
ALTER TABLE feeds ADD COLUMN invalid_bytes BIGINT DEFAULT 0;
