-- Zone in which times without a zone were read. If the setting ingest.zones changes, the same content is read again.
ALTER TABLE feeds ADD COLUMN zone VARCHAR DEFAULT '';
