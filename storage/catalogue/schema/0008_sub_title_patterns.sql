-- What a sub-title is, by `guidespace patterns` (tasks/subtitles): episode_number, part, date, guests, teams and others.
CREATE TABLE sub_title_patterns (
    sub_title VARCHAR PRIMARY KEY,     -- as programmes have it
    pattern VARCHAR NOT NULL,
    probability FLOAT                  -- of the classifier, calibrated; NULL where a rule decided
);
