-- Bytes of a feed that are invalid in its encoding (tasks/ingest/encoding.py): dropped from texts, kept in originals.
ALTER TABLE feeds ADD COLUMN invalid_bytes BIGINT DEFAULT 0;
