-- A resume point is not an opinion. Earlier versions stored the position of Kodi and Jellyfin as one, at most 0.5 and not
-- seen; ratings of episodes that were never watched look the same and come back when the library is read again.
DELETE FROM likes WHERE source IN ('kodi', 'jellyfin') AND NOT seen AND value <= 0.5;
UPDATE likes SET value = 0 WHERE source = 'table: share' AND value < 0;
