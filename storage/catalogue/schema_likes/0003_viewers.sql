-- Time zones of viewers that are not in the zone of the home.
CREATE TABLE viewers (
    viewer VARCHAR PRIMARY KEY,        -- 32 hexadecimal digits, as in likes
    zone VARCHAR NOT NULL              -- IANA name
);
