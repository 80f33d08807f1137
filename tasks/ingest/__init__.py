"""Stage ingest: reads feeds into the catalogue and publishes a snapshot of it.

``ingest_feeds`` (ingest.py) passes each feed through ``locate`` (sources/resolve.py), ``fetch``
(sources/download.py), ``FeedStream`` (sources/decompress.py), ``read_batches`` (readers.py) and
``FeedWriter`` (storage/catalogue/ledger.py). xmltv/reader.py reads XMLTV, json_lines.py reads JSON lines.
Ingest and tasks/enrich share xmltv/records.py, which reads single programmes of XMLTV.
"""
