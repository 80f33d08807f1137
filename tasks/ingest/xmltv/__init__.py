"""Parses XMLTV: by a fast scanner (scan.py) if the markup is simple, else by lxml (fallback/)."""
