-- What was read (feeds), what it said (channels, programmes) and what could not be kept (rejects).

CREATE TABLE feeds (
    feed_id INTEGER PRIMARY KEY,       -- rising in the order of reading
    source VARCHAR NOT NULL,           -- absolute path, or URL without credentials
    content_digest VARCHAR NOT NULL,   -- SHA-256 of the bytes as stored
    bytes BIGINT NOT NULL,             -- their number
    read_at TIMESTAMP NOT NULL,        -- UTC
    seen BIGINT NOT NULL,              -- programmes seen = stored + duplicates + rejected,
    stored BIGINT NOT NULL,            -- counted at this reading and never revised
    duplicates BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    UNIQUE (source, content_digest),
    CHECK (seen = stored + duplicates + rejected)
);

CREATE TABLE channels (
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,          -- XMLTV id
    name VARCHAR NOT NULL,             -- first display-name; the id where there is none
    PRIMARY KEY (source, channel)
);

-- One row a (source, channel, start, title). The ledger's transaction keeps that, not an index: an index over every
-- programme costs more than the insert itself.
CREATE TABLE programmes (
    feed_id INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    start TIMESTAMP NOT NULL,          -- UTC
    stop TIMESTAMP,                    -- UTC, as given; NULL where missing or unreadable
    stop_note VARCHAR,                 -- missing, unreadable, not_after_start, over_a_day; NULL where all is well
    title VARCHAR NOT NULL,
    title_language VARCHAR,
    sub_title VARCHAR,
    categories VARCHAR[] NOT NULL,
    episode_numbers VARCHAR[] NOT NULL,
    date VARCHAR
);

CREATE TABLE rejects (
    feed_id INTEGER NOT NULL,
    line BIGINT NOT NULL,              -- in the uncompressed file, from 1
    reason VARCHAR NOT NULL,
    excerpt VARCHAR NOT NULL           -- at most 200 characters
);
