-- Who said what when: grabs of one source replace each other, nothing is forgotten. Everything XMLTV says of a programme.
-- Documented, with example queries, in docs/catalogue.md.

-- The same bytes may come again after others (A, B, A): the third grab is one of its own.
CREATE TABLE feeds_2 (
    feed_id INTEGER PRIMARY KEY,       -- rising in the order of reading
    source VARCHAR NOT NULL,           -- absolute path, or URL without credentials
    content_digest VARCHAR NOT NULL,   -- SHA-256 of the bytes as stored
    bytes BIGINT NOT NULL,             -- their number
    read_at TIMESTAMP NOT NULL,        -- UTC; when we read it
    grabbed_at TIMESTAMP NOT NULL,     -- UTC; when it was said: the same, or the date of a guide read later (backfill)
    seen BIGINT NOT NULL,              -- programmes seen = stored + duplicates + rejected,
    stored BIGINT NOT NULL,            -- counted at this reading and never revised
    duplicates BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    CHECK (seen = stored + duplicates + rejected)
);
INSERT INTO feeds_2 SELECT feed_id, source, content_digest, bytes, read_at, read_at, seen, stored, duplicates, rejected FROM feeds;
DROP TABLE feeds;
ALTER TABLE feeds_2 RENAME TO feeds;

-- What a URL answered last, so that an unchanged one costs a single request.
CREATE TABLE validators (
    source VARCHAR PRIMARY KEY,
    etag VARCHAR,
    last_modified VARCHAR
);

-- A row whenever a grab says something else of a channel than the grab before it.
CREATE TABLE channel_history (
    feed_id INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,          -- XMLTV id
    name VARCHAR NOT NULL,             -- first display-name; the id where there is none
    names VARCHAR[] NOT NULL,          -- every display-name
    icon VARCHAR,
    lcn VARCHAR,                       -- logical channel number
    urls VARCHAR[] NOT NULL
);
INSERT INTO channel_history
SELECT (SELECT min(feed_id) FROM feeds WHERE feeds.source = channels.source), source, channel, name, [name], NULL, NULL, []
FROM channels
WHERE source IN (SELECT source FROM feeds);
DROP TABLE channels;

-- Which part of a channel's time a grab speaks of: from its first start to the end of its last programme.
CREATE TABLE windows (
    feed_id INTEGER NOT NULL,
    channel VARCHAR NOT NULL,
    begins TIMESTAMP NOT NULL,
    ends TIMESTAMP NOT NULL            -- exclusive
);

-- One row a (source, channel, start, title) and wording. The ledger's transaction keeps that, not an index: an index over
-- every programme costs more than the insert itself.
CREATE TABLE programmes_2 (
    programme_id BIGINT NOT NULL,      -- rising
    feed_id INTEGER NOT NULL,          -- the grab that said it first
    replaced_by INTEGER,               -- the grab (feed_id) that says something else about that time; NULL: nobody does
    source VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    start TIMESTAMP NOT NULL,          -- UTC
    stop TIMESTAMP,                    -- UTC; where stop_note is missing or unreadable: the next start on the channel, if within a day
    stop_note VARCHAR,                 -- of the stop as given: missing, unreadable, not_after_start, over_a_day; NULL where all is well
    title VARCHAR NOT NULL,            -- the first title
    title_language VARCHAR,
    sub_title VARCHAR,
    categories VARCHAR[] NOT NULL,
    episode_numbers VARCHAR[] NOT NULL,
    episode_systems VARCHAR[],         -- one an episode number: xmltv_ns, onscreen, dd_progid, … or NULL
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

-- What programmes say beyond the table above; no row where they say nothing more.
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

-- Text as the feed had it, where cleaning changed more than the white space around it.
CREATE TABLE originals (
    programme_id BIGINT NOT NULL,
    element VARCHAR NOT NULL,          -- title, sub_title, category, description
    text VARCHAR NOT NULL
);
