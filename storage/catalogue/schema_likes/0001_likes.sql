-- What viewers said of programmes, and what they watched. A viewer is the salted hash of a name (storage/catalogue/likes.py).
CREATE TABLE likes (
    viewer VARCHAR NOT NULL,           -- 32 hexadecimal digits
    show_key VARCHAR NOT NULL,         -- the title as the catalogue knows it: without marks, case-folded
    episode VARCHAR NOT NULL,          -- s2e4, or e4 where no season is known; empty: none is known
    sub_title VARCHAR NOT NULL,        -- as the source has it; empty: none
    source VARCHAR NOT NULL,           -- stated (by the viewer), or the kind of file that it was read from
    title VARCHAR NOT NULL,            -- as it was given
    time TIMESTAMP NOT NULL,           -- UTC; when it was said or watched
    value FLOAT NOT NULL,              -- from -1 (dislike) over 0 (neither) to 1 (like)
    seen BOOLEAN NOT NULL,             -- this episode (without one: this programme) was watched
    PRIMARY KEY (viewer, show_key, episode, sub_title, source),
    CHECK (value BETWEEN -1 AND 1)
);
