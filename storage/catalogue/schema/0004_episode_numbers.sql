-- Episode numbers that 0003 misread: the part of "S3 E4 P1" and the episode of "Series 3, 4/6" are found; a bare number in a
-- system that numbers programmes, not episodes (tmdb 12345), is no episode.
CREATE OR REPLACE MACRO parse_episode(system, number) AS (
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
              CASE WHEN lower(coalesce(system, 'onscreen')) IN ('onscreen', 'common', 'sxxexx')
              THEN coalesce(
                  try_cast(regexp_extract(number, '^\s*\(?#?(\d{1,5})\s*(?:/|of|von|de)?\s*\d*\)?\s*$', 1) AS INTEGER),
                  try_cast(regexp_extract(number, '(?i)(?:^|[,;(])\s*(\d{1,5})\s*(?:/|of|von)\s*\d', 1) AS INTEGER)) END),
          'episodes': try_cast(regexp_extract(number, '(?i)\d\s*(?:/|\bof\b|\bvon\b)\s*(\d{1,5})', 1) AS INTEGER),
          'part': try_cast(regexp_extract(number, '(?i)\b(?:part|pt\.?|p|teil|partie)\s*(\d{1,3})', 1) AS INTEGER),
          'parts': NULL::INTEGER}
    END
);
