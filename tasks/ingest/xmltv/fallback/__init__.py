"""Parses XMLTV with lxml where the fast scanner (scan.py) does not accept the content."""
