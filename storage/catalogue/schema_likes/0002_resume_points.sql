-- A resume point is not an opinion. Earlier versions stored resume points of Kodi and Jellyfin as opinions with a value
-- of at most 0.5 that are not seen. Ratings of unwatched episodes look the same; they are imported again with the library.
DELETE FROM likes WHERE source IN ('kodi', 'jellyfin') AND NOT seen AND value <= 0.5;
UPDATE likes SET value = 0 WHERE source = 'table: share' AND value < 0;
