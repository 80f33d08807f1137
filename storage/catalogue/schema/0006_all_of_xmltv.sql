-- XMLTV content that has no column (tasks/ingest/extra.py, docs/catalogue.md).
ALTER TABLE programmes ADD COLUMN extra JSON;
ALTER TABLE channel_history ADD COLUMN extra JSON;
-- Attributes of the root element of a grab, such as its generator.
CREATE TABLE feed_attributes (
    feed_id INTEGER NOT NULL,
    attribute VARCHAR NOT NULL,        -- source-info-name, generator-info-url, date, …
    value VARCHAR NOT NULL
);
