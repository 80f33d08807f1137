"""Reads XMLTV: a scanner (scan.py) for simple markup, lxml (fallback/) for all other markup."""
