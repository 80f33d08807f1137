"""Imports feeds (TV guides) into the DuckDB catalogue, and publishes a snapshot of it as Parquet files.

``ingest_feeds`` (ingest.py) passes each feed through ``locate`` (sources/resolve.py), ``fetch``
(sources/download.py), ``FeedStream`` (sources/decompress.py), ``read_batches`` (readers.py) and
``FeedWriter`` (storage/catalogue/ledger.py). xmltv/reader.py parses XMLTV, and json_lines.py parses JSON
lines. tasks/enrich uses xmltv/records.py, too.
"""
