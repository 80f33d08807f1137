-- Season, episode and part as columns, read by storage/episodes; stored programmes are read when this is applied
-- (storage/catalogue/episode_columns.py). Counted from 1; NULL where unknown.
ALTER TABLE programmes ADD COLUMN season INTEGER;
ALTER TABLE programmes ADD COLUMN seasons INTEGER;   -- how many there are
ALTER TABLE programmes ADD COLUMN episode INTEGER;
ALTER TABLE programmes ADD COLUMN episodes INTEGER;
ALTER TABLE programmes ADD COLUMN part INTEGER;
ALTER TABLE programmes ADD COLUMN parts INTEGER;
