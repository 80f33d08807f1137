-- Season, episode and part as columns, read by storage/episodes; stored programmes are read when this is applied
-- (storage/catalogue/episode_columns.py). Counted from 1; NULL where unknown.
ALTER TABLE programmes ADD COLUMN season INTEGER;
ALTER TABLE programmes ADD COLUMN seasons INTEGER;   -- how many there are
ALTER TABLE programmes ADD COLUMN episode INTEGER;
ALTER TABLE programmes ADD COLUMN episodes INTEGER;
ALTER TABLE programmes ADD COLUMN part INTEGER;
ALTER TABLE programmes ADD COLUMN parts INTEGER;

-- Without the columns of the view episodes, with which queries join it.
CREATE OR REPLACE VIEW schedule AS
SELECT programmes.* EXCLUDE (replaced_by, season, seasons, episode, episodes, part, parts), channels.name AS channel_name, details.* EXCLUDE (programme_id)
FROM programmes
LEFT JOIN channels USING (source, channel)
LEFT JOIN details USING (programme_id)
WHERE replaced_by IS NULL;

CREATE OR REPLACE VIEW episodes AS
SELECT programme_id, system, number, season, seasons, episode, episodes, part, parts, pattern
FROM (
    SELECT * EXCLUDE (episode_numbers, episode_systems), unnest(episode_numbers) AS number, unnest(coalesce(episode_systems, list_transform(episode_numbers, lambda _: NULL::VARCHAR))) AS system
    FROM programmes
)
LEFT JOIN sub_title_patterns USING (sub_title);

DROP MACRO parse_episode;
