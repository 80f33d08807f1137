"""Adds missing categories and episode numbers to an XMLTV file and copies everything else byte for byte.

This package uses the stages: it reads guides like ingest and embeds titles with the champion model.
"""
