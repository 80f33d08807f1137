"""Imports feeds (TV guides) into the DuckDB catalogue, and publishes snapshots of it as Parquet files.

For each feed, ``ingest_feeds`` (ingest.py) calls ``locate`` (sources/resolve.py), ``fetch``
(sources/download.py), ``FeedStream`` (sources/decompress.py), ``read_batches`` (readers.py) and
``FeedWriter`` (storage/catalogue/ledger.py), in this order. xmltv/reader.py parses XMLTV, and json_lines.py
parses JSON lines. tasks/enrich and tasks/merge also use xmltv/records.py.
"""
