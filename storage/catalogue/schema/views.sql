-- Views and macros for queries (docs/catalogue.md). They are created again whenever this file has changed.

-- Channels as their source described them last.
CREATE OR REPLACE VIEW channels AS
SELECT source, channel, name, names, icon, lcn, urls, extra
FROM channel_history
JOIN feeds USING (feed_id, source)
QUALIFY row_number() OVER (PARTITION BY source, channel ORDER BY grabbed_at DESC, feed_id DESC) = 1;

-- Programmes that were current at an instant (UTC).
CREATE OR REPLACE MACRO programmes_as_of(instant) AS TABLE
SELECT programmes.*
FROM programmes
JOIN feeds AS introduced ON introduced.feed_id = programmes.feed_id
LEFT JOIN feeds AS superseded ON superseded.feed_id = programmes.replaced_by
WHERE introduced.grabbed_at <= instant
  AND (superseded.feed_id IS NULL OR superseded.grabbed_at > instant);

-- Current programmes with all elements except episode numbers, which the view episodes has (join by programme_id).
CREATE OR REPLACE VIEW schedule AS
SELECT programmes.* EXCLUDE (replaced_by, season, seasons, episode, episodes, part, parts),
       channels.name AS channel_name, details.* EXCLUDE (programme_id)
FROM programmes
LEFT JOIN channels USING (source, channel)
LEFT JOIN details USING (programme_id)
WHERE replaced_by IS NULL;

-- All titles of a programme with their language; position 1 is the first title.
CREATE OR REPLACE VIEW programme_titles AS
SELECT programme_id, 1 AS position, title, title_language AS language
FROM programmes
UNION ALL
SELECT programme_id, 1 + position, translation.text, translation.language
FROM (
    SELECT programme_id, unnest(titles) AS translation, generate_subscripts(titles, 1) AS position
    FROM (
        SELECT programme_id, list_filter(translations, lambda entry: entry.element = 'title') AS titles
        FROM details
    )
);

-- Each episode number as the feed states it, with the parsed numbers of its programme.
CREATE OR REPLACE VIEW episodes AS
SELECT programme_id, system, number, season, seasons, episode, episodes, part, parts, pattern
FROM (
    SELECT * EXCLUDE (episode_numbers, episode_systems), unnest(episode_numbers) AS number,
           unnest(coalesce(episode_systems, [NULL::VARCHAR FOR _ IN episode_numbers])) AS system
    FROM programmes
)
LEFT JOIN sub_title_patterns USING (sub_title);

-- Views and macros of earlier versions are removed.
DROP VIEW IF EXISTS titles;
DROP MACRO IF EXISTS parse_episode;
