"""Stage ingest: reads feeds into the catalogue and publishes a snapshot of it.

``ingest_feeds`` (ingest.py) passes each feed through ``locate`` (sources/resolve.py), ``fetch``
(sources/download.py), ``FeedStream`` (sources/decompress.py), ``read_batches`` (readers.py) and
``FeedWriter`` (storage/catalogue/ledger.py). A format is read by xmltv/reader.py or json_lines.py.
xmltv/records.py reads XMLTV for ingest and for tasks/enrich.
"""
