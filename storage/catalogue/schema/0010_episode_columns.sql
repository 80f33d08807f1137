-- Season, episode and part, parsed by storage/episodes and counted from 1; NULL if unknown. When this migration is
-- applied, storage/catalogue/episode_columns.py fills the columns of stored programmes.
ALTER TABLE programmes ADD COLUMN season INTEGER;
ALTER TABLE programmes ADD COLUMN seasons INTEGER;   -- total number of seasons
ALTER TABLE programmes ADD COLUMN episode INTEGER;
ALTER TABLE programmes ADD COLUMN episodes INTEGER;
ALTER TABLE programmes ADD COLUMN part INTEGER;
ALTER TABLE programmes ADD COLUMN parts INTEGER;
