"""Adds missing categories and episode numbers to an XMLTV file and copies everything else byte for byte.

This package reads guides with the code of the stage ingest, and embeds titles with the served model.
"""
