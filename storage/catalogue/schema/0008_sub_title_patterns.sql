-- Patterns of sub-titles, assigned by `guidespace patterns` (tasks/subtitles): episode_number, part, date, guests, …
CREATE TABLE sub_title_patterns (
    sub_title VARCHAR PRIMARY KEY,     -- as in programmes
    pattern VARCHAR NOT NULL,
    probability FLOAT                  -- calibrated probability of the classifier; NULL if a rule decided
);
