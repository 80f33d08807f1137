-- What a sub-title is, by `guidespace patterns` (tasks/subtitles): episode_number, part, date, guests, teams and others.
CREATE TABLE sub_title_patterns (
    sub_title VARCHAR PRIMARY KEY,     -- as programmes have it
    pattern VARCHAR NOT NULL,
    probability FLOAT                  -- of the classifier, calibrated; NULL where a rule decided
);

CREATE OR REPLACE VIEW episodes AS
SELECT programme_id, system, number, unnest(parse_episode(system, number)), pattern
FROM (
    SELECT programme_id, sub_title, unnest(episode_numbers) AS number, unnest(coalesce(episode_systems, list_transform(episode_numbers, lambda _: NULL::VARCHAR))) AS system
    FROM programmes
)
LEFT JOIN sub_title_patterns USING (sub_title);
