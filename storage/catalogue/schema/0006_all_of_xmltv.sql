-- What XMLTV says and no column holds (tasks/ingest/extra.py, docs/catalogue.md): all of xmltv.dtd.
ALTER TABLE programmes ADD COLUMN extra JSON;
ALTER TABLE channel_history ADD COLUMN extra JSON;
-- Attributes of a grab's root: who made it, from what.
CREATE TABLE feed_attributes (
    feed_id INTEGER NOT NULL,
    attribute VARCHAR NOT NULL,        -- source-info-name, generator-info-url, date, …
    value VARCHAR NOT NULL
);
