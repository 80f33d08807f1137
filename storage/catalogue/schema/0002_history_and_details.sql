-- History: grabs of a source replace each other, and replaced programmes are kept. Details: further XMLTV elements of a
-- programme. docs/catalogue.md has a description with example queries.

-- The same content may occur again after other content (A, B, A); the third grab is then a separate row.
CREATE TABLE feeds_2 (
    feed_id INTEGER PRIMARY KEY,       -- increases in the order of reading
    source VARCHAR NOT NULL,           -- absolute path, or URL without credentials
    content_digest VARCHAR NOT NULL,   -- SHA-256 of the file as stored
    bytes BIGINT NOT NULL,             -- size of the file
    read_at TIMESTAMP NOT NULL,        -- UTC; time of the reading
    grabbed_at TIMESTAMP NOT NULL,     -- UTC; equals read_at, or is the date of an older guide (backfill)
    seen BIGINT NOT NULL,              -- programmes seen = stored + duplicates + rejected,
    stored BIGINT NOT NULL,            -- counted at this reading and never changed
    duplicates BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    CHECK (seen = stored + duplicates + rejected)
);
INSERT INTO feeds_2 SELECT feed_id, source, content_digest, bytes, read_at, read_at, seen, stored, duplicates, rejected FROM feeds;
DROP TABLE feeds;
ALTER TABLE feeds_2 RENAME TO feeds;

-- Validators of the last response of a URL, so that an unchanged feed takes a single request.
CREATE TABLE validators (
    source VARCHAR PRIMARY KEY,
    etag VARCHAR,
    last_modified VARCHAR
);

-- A row for each grab that describes a channel differently from the grab before it.
CREATE TABLE channel_history (
    feed_id INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,          -- XMLTV id
    name VARCHAR NOT NULL,             -- first display-name, or the id if there is none
    names VARCHAR[] NOT NULL,          -- all display-names
    icon VARCHAR,
    lcn VARCHAR,                       -- logical channel number
    urls VARCHAR[] NOT NULL
);
INSERT INTO channel_history
SELECT (SELECT min(feed_id) FROM feeds WHERE feeds.source = channels.source), source, channel, name, [name], NULL, NULL, []
FROM channels
WHERE source IN (SELECT source FROM feeds);
DROP TABLE channels;

-- Time that a grab covers on a channel: from its first start to the end of its last programme.
CREATE TABLE windows (
    feed_id INTEGER NOT NULL,
    channel VARCHAR NOT NULL,
    begins TIMESTAMP NOT NULL,
    ends TIMESTAMP NOT NULL            -- exclusive
);

-- One row per (source, channel, start, title) and version of the other columns. The ledger's transaction ensures this
-- without an index, because an index of all programmes takes more time than the insertion itself.
CREATE TABLE programmes_2 (
    programme_id BIGINT NOT NULL,      -- increases
    feed_id INTEGER NOT NULL,          -- the first grab that contains it
    replaced_by INTEGER,               -- feed_id of the grab that replaced the programme; NULL if it is current
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    start TIMESTAMP NOT NULL,          -- UTC
    stop TIMESTAMP,                    -- UTC; if stop_note is missing or unreadable, the next start on the channel within a day
    stop_note VARCHAR,                 -- about the stop in the feed: missing, unreadable, not_after_start, over_a_day; NULL if it is plausible
    title VARCHAR NOT NULL,            -- the first title
    title_language VARCHAR,
    sub_title VARCHAR,
    categories VARCHAR[] NOT NULL,
    episode_numbers VARCHAR[] NOT NULL,
    episode_systems VARCHAR[],         -- one per episode number: xmltv_ns, onscreen, dd_progid, … or NULL
    date VARCHAR
);
INSERT INTO programmes_2
SELECT rowid + 1, feed_id, NULL, source, channel, start, stop, stop_note, title, title_language, sub_title, categories, episode_numbers, NULL, date
FROM programmes;
DROP TABLE programmes;
ALTER TABLE programmes_2 RENAME TO programmes;

INSERT INTO windows
SELECT feed_id, channel, min(start), greatest(max(start) + INTERVAL 1 MICROSECOND, coalesce(max(stop) FILTER (WHERE stop_note IS NULL), max(start)))
FROM programmes
GROUP BY feed_id, channel;

-- Other elements of programmes; no row if a programme has none.
CREATE TABLE details (
    programme_id BIGINT NOT NULL,
    description VARCHAR,
    translations STRUCT(element VARCHAR, text VARCHAR, language VARCHAR)[], -- further titles, sub-titles and descriptions
    keywords VARCHAR[],
    credits STRUCT(role VARCHAR, name VARCHAR, "character" VARCHAR)[],
    is_new BOOLEAN,
    is_premiere BOOLEAN,
    is_live BOOLEAN,
    previously_shown BOOLEAN,
    previously_shown_at TIMESTAMP,     -- UTC
    star_ratings STRUCT(system VARCHAR, value VARCHAR)[],
    ratings STRUCT(system VARCHAR, value VARCHAR)[],
    length_minutes DOUBLE,
    language VARCHAR,
    original_language VARCHAR,
    countries VARCHAR[],
    icon VARCHAR,
    urls VARCHAR[]
);

-- Texts before cleaning, if cleaning changed more than surrounding white space.
CREATE TABLE originals (
    programme_id BIGINT NOT NULL,
    element VARCHAR NOT NULL,          -- title, sub_title, category, description
    text VARCHAR NOT NULL
);
