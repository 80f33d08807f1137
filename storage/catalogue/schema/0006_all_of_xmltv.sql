-- Episode numbers that 0004 misread. An id is no episode: show/S3535-744, UUIDs; a mark stands at the beginning of a word and its
-- number is a word's end. A number is read whole (E112205). What xmltv_ns gives as -1 is not known, the other parts are.
CREATE OR REPLACE MACRO parse_episode(system, number) AS (
    CASE
    WHEN system = 'xmltv_ns' OR (coalesce(system, 'onscreen') = 'onscreen'
                              AND regexp_full_match(number, '(?:[\d\s/]|-1)*\.(?:[\d\s/]|-1)*\.(?:[\d\s/]|-1)*'))
    THEN list_transform(
        [regexp_extract(number,
            '^\s*(?:-\d+|(\d*))\s*(?:/\s*(?:-\d+|(\d+)))?' || repeat('\s*\.?\s*(?:-\d+|(\d*))\s*(?:/\s*(?:-\d+|(\d+)))?', 2) || '\s*$',
            ['s', 'sn', 'e', 'en', 'p', 'pn'])],
        lambda found: {'season': try_cast(found.s AS INTEGER) + 1, 'seasons': try_cast(found.sn AS INTEGER),
                       'episode': try_cast(found.e AS INTEGER) + 1, 'episodes': try_cast(found.en AS INTEGER),
                       'part': try_cast(found.p AS INTEGER) + 1, 'parts': try_cast(found.pn AS INTEGER)})[1]
    WHEN system = 'dd_progid'
    THEN {'season': NULL::INTEGER, 'seasons': NULL::INTEGER,
          'episode': nullif(try_cast(regexp_extract(number, '^\s*EP\d+\.?(\d{4})\s*$', 1) AS INTEGER), 0), 'episodes': NULL::INTEGER,
          'part': NULL::INTEGER, 'parts': NULL::INTEGER}
    WHEN regexp_matches(number, '(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-')
    THEN {'season': NULL::INTEGER, 'seasons': NULL::INTEGER,
          'episode': NULL::INTEGER, 'episodes': NULL::INTEGER,
          'part': NULL::INTEGER, 'parts': NULL::INTEGER}
    ELSE list_transform(
        [{'season': coalesce(
              try_cast(regexp_extract(number,
                  '(?i)(?:^|[\s(\[,;:.|])'
                  || '(?:s|season|series|staffel|saison|temporada|stagione|stag\.|seizoen|sæson|sesong|säsong)'
                  || '\s*\.?\s*(\d+)(?:$|[\s)\],;:.|]|\s*[-–/]?\s*e|x\d|p\d)', 1) AS INTEGER),
              try_cast(regexp_extract(number, '^\s*(\d{1,3})x\d', 1) AS INTEGER)),
          'episode': coalesce(
              try_cast(regexp_extract(number,
                  '(?i)(?:^|[\s(\[,;:.|]|(?:^|[\s(\[,;:.|])[a-z]*\.?\s*\d+\s*[-–,.:/]?\s*)'
                  || '(?:e|e[ep]\.?|episode|episodio|épisode|folge|afl\.|aflevering|avsnitt|afsnit|odc\.|puntata)'
                  || '\s*[.#]?\s*(\d+)(?:$|[\s)\],;:.|/&+–-]|[ep]\d|of|von)', 1) AS INTEGER),
              try_cast(regexp_extract(number, '^\s*\d{1,3}x(\d+)(?:$|[^\da-zA-Z])', 1) AS INTEGER),
              CASE WHEN lower(coalesce(system, 'onscreen')) IN ('onscreen', 'common', 'sxxexx')
              THEN coalesce(
                  try_cast(regexp_extract(number, '^\s*\(?#?(\d{1,5})\s*(?:/|of|von|de)?\s*\d*\)?\s*$', 1) AS INTEGER),
                  try_cast(regexp_extract(number, '(?i)(?:^|[,;(])\s*(\d{1,5})\s*(?:/|of|von)\s*\d', 1) AS INTEGER)) END),
          'episodes': try_cast(regexp_extract(number, '(?i)\d\s*(?:/|\bof\b|\bvon\b)\s*(\d+)', 1) AS INTEGER),
          'part': try_cast(regexp_extract(number,
              '(?i)(?:^|[\s(\[,;:.|]|\d)(?:part|pt\.?|p|teil|partie)\s*(\d+)(?:$|[^\da-zA-Z-])', 1) AS INTEGER)}],
        lambda found: {'season': found.season, 'seasons': NULL::INTEGER,
                       'episode': found.episode, 'episodes': CASE WHEN found.episode IS NOT NULL THEN found.episodes END,
                       'part': found.part, 'parts': NULL::INTEGER})[1]
    END
);

-- What XMLTV says and no column holds (tasks/ingest/extra.py, docs/catalogue.md): all of xmltv.dtd.
ALTER TABLE programmes ADD COLUMN extra JSON;
ALTER TABLE channel_history ADD COLUMN extra JSON;
-- Attributes of a grab's root: who made it, from what.
CREATE TABLE feed_attributes (
    feed_id INTEGER NOT NULL,
    attribute VARCHAR NOT NULL,        -- source-info-name, generator-info-url, date, …
    value VARCHAR NOT NULL
);

CREATE OR REPLACE VIEW channels AS
SELECT source, channel, name, names, icon, lcn, urls, extra
FROM channel_history
JOIN feeds USING (feed_id, source)
QUALIFY row_number() OVER (PARTITION BY source, channel ORDER BY grabbed_at DESC, feed_id DESC) = 1;

CREATE OR REPLACE VIEW schedule AS
SELECT programmes.* EXCLUDE (replaced_by), channels.name AS channel_name, details.* EXCLUDE (programme_id)
FROM programmes
LEFT JOIN channels USING (source, channel)
LEFT JOIN details USING (programme_id)
WHERE replaced_by IS NULL;
