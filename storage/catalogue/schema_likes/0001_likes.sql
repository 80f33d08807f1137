-- Opinions of viewers, and programmes they watched. A viewer is the salted hash of a name (storage/catalogue/likes.py).
CREATE TABLE likes (
    viewer VARCHAR NOT NULL,           -- 32 hexadecimal digits
    show_key VARCHAR NOT NULL,         -- the title without marks, case-folded (tasks/text/titles.py)
    episode VARCHAR NOT NULL,          -- s2e4, or e4 if the season is unknown; empty if the episode is unknown
    sub_title VARCHAR NOT NULL,        -- as in the source; empty if none
    source VARCHAR NOT NULL,           -- stated (by the viewer), or the kind of file from which it was imported
    title VARCHAR NOT NULL,            -- as entered or imported
    time TIMESTAMP NOT NULL,           -- UTC; when the opinion was stated or the programme was watched
    value FLOAT NOT NULL,              -- from -1 (dislike) over 0 (neither) to 1 (like)
    seen BOOLEAN NOT NULL,             -- whether the episode (or the programme, if it has no episode) was watched
    PRIMARY KEY (viewer, show_key, episode, sub_title, source),
    CHECK (value BETWEEN -1 AND 1)
);
