-- Feeds that were read, their channels and programmes, and elements that could not be read (rejects).

CREATE TABLE feeds (
    feed_id INTEGER PRIMARY KEY,       -- increases in the order of reading
    source VARCHAR NOT NULL,           -- absolute path, or URL without credentials
    content_digest VARCHAR NOT NULL,   -- SHA-256 of the file as stored
    bytes BIGINT NOT NULL,             -- size of the file
    read_at TIMESTAMP NOT NULL,        -- UTC
    seen BIGINT NOT NULL,              -- programmes seen = stored + duplicates + rejected,
    stored BIGINT NOT NULL,            -- counted at this reading and never changed
    duplicates BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    UNIQUE (source, content_digest),
    CHECK (seen = stored + duplicates + rejected)
);

CREATE TABLE channels (
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,          -- XMLTV id
    name VARCHAR NOT NULL,             -- first display-name, or the id if there is none
    PRIMARY KEY (source, channel)
);

-- One row per (source, channel, start, title). The ledger's transaction ensures this without an index, because an
-- index of all programmes takes more time than the insertion itself.
CREATE TABLE programmes (
    feed_id INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    start TIMESTAMP NOT NULL,          -- UTC
    stop TIMESTAMP,                    -- UTC, as in the feed; NULL if missing or unreadable
    stop_note VARCHAR,                 -- missing, unreadable, not_after_start, over_a_day; NULL if the stop is plausible
    title VARCHAR NOT NULL,
    title_language VARCHAR,
    sub_title VARCHAR,
    categories VARCHAR[] NOT NULL,
    episode_numbers VARCHAR[] NOT NULL,
    date VARCHAR
);

CREATE TABLE rejects (
    feed_id INTEGER NOT NULL,
    line BIGINT NOT NULL,              -- line in the uncompressed file, from 1
    reason VARCHAR NOT NULL,
    excerpt VARCHAR NOT NULL           -- at most 200 characters
);
