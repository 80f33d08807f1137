-- What users query; documented in docs/catalogue.md.

-- Channels as their source described them last.
CREATE VIEW channels AS
SELECT source, channel, name, names, icon, lcn, urls
FROM channel_history
JOIN feeds USING (feed_id, source)
QUALIFY row_number() OVER (PARTITION BY source, channel ORDER BY grabbed_at DESC, feed_id DESC) = 1;

-- What each source says of each time, as known at an instant (UTC).
CREATE MACRO programmes_as_of(instant) AS TABLE
SELECT programmes.*
FROM programmes
JOIN feeds AS said ON said.feed_id = programmes.feed_id
LEFT JOIN feeds AS unsaid ON unsaid.feed_id = programmes.replaced_by
WHERE said.grabbed_at <= instant
  AND (unsaid.feed_id IS NULL OR unsaid.grabbed_at > instant);

-- What each source says now, with everything it says.
CREATE VIEW schedule AS
SELECT programmes.* EXCLUDE (replaced_by), channels.name AS channel_name, details.* EXCLUDE (programme_id)
FROM programmes
LEFT JOIN channels USING (source, channel)
LEFT JOIN details USING (programme_id)
WHERE replaced_by IS NULL;

-- Every title of a programme with its language; position 1 is the first.
CREATE VIEW titles AS
SELECT programme_id, 1 AS position, title, title_language AS language
FROM programmes
UNION ALL
SELECT programme_id, 1 + row_number() OVER (PARTITION BY programme_id), further.text, further.language
FROM (SELECT programme_id, unnest(list_filter(translations, lambda each: each.element = 'title')) AS further FROM details);

-- Season, episode and part, counted from 1, and how many there are, of an episode number in any system.
CREATE MACRO parse_episode(system, number) AS (
    CASE
    WHEN system = 'xmltv_ns' OR (coalesce(system, 'onscreen') = 'onscreen' AND regexp_full_match(number, '[\d\s/]*\.[\d\s/]*\.[\d\s/]*'))
    THEN list_transform(
        [regexp_extract(number, '^\s*(\d*)\s*(?:/\s*(\d+))?\s*\.?\s*(\d*)\s*(?:/\s*(\d+))?\s*\.?\s*(\d*)\s*(?:/\s*(\d+))?\s*$', ['s', 'sn', 'e', 'en', 'p', 'pn'])],
        lambda found: {'season': try_cast(found.s AS INTEGER) + 1, 'seasons': try_cast(found.sn AS INTEGER),
                       'episode': try_cast(found.e AS INTEGER) + 1, 'episodes': try_cast(found.en AS INTEGER),
                       'part': try_cast(found.p AS INTEGER) + 1, 'parts': try_cast(found.pn AS INTEGER)})[1]
    WHEN system = 'dd_progid'
    THEN {'season': NULL::INTEGER, 'seasons': NULL::INTEGER,
          'episode': nullif(try_cast(regexp_extract(number, '^\s*EP\d+\.?(\d{4})\s*$', 1) AS INTEGER), 0), 'episodes': NULL::INTEGER,
          'part': NULL::INTEGER, 'parts': NULL::INTEGER}
    ELSE {'season': coalesce(
              try_cast(regexp_extract(number, '(?i)(?:\bs|season|series|staffel|saison|temporada|stagione|stag\.|seizoen|sæson|sesong|säsong)\s*\.?\s*(\d{1,4})', 1) AS INTEGER),
              try_cast(regexp_extract(number, '^\s*(\d{1,3})x\d', 1) AS INTEGER)),
          'seasons': NULL::INTEGER,
          'episode': coalesce(
              try_cast(regexp_extract(number, '(?i)(?:\be|\be[ep]\.?|\d\s*e|\d\s*ep\.?|episode|episodio|épisode|folge|afl\.|aflevering|avsnitt|afsnit|odc\.|puntata)\s*[.#]?\s*(\d{1,5})', 1) AS INTEGER),
              try_cast(regexp_extract(number, '^\s*\d{1,3}x(\d{1,5})', 1) AS INTEGER),
              try_cast(regexp_extract(number, '^\s*\(?#?(\d{1,5})\s*(?:/|of|von|de)?\s*\d*\)?\s*$', 1) AS INTEGER)),
          'episodes': try_cast(regexp_extract(number, '(?i)\d\s*(?:/|\bof\b|\bvon\b)\s*(\d{1,5})', 1) AS INTEGER),
          'part': try_cast(regexp_extract(number, '(?i)\b(?:part|pt\.?|teil|partie)\s*(\d{1,3})', 1) AS INTEGER),
          'parts': NULL::INTEGER}
    END
);

-- Every episode number, as given and taken apart.
CREATE VIEW episodes AS
SELECT programme_id, system, number, unnest(parse_episode(system, number))
FROM (
    SELECT programme_id, unnest(episode_numbers) AS number, unnest(coalesce(episode_systems, list_transform(episode_numbers, lambda _: NULL::VARCHAR))) AS system
    FROM programmes
);
