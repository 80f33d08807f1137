"""A guide with its gaps filled: categories where an XMLTV file has none, everything else byte for byte.

It stands above the stages: it reads as ingest does and embeds by the model that serves.
"""
