"""Stage ingest: reads feeds into the catalogue and publishes a snapshot of it."""
