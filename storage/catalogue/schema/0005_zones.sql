-- The zone in which times without one were read: the same bytes with another setting (ingest.zones) are read again.
ALTER TABLE feeds ADD COLUMN zone VARCHAR DEFAULT '';
