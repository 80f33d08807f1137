"""Parses frames of XMLTV that scan.py does not accept, with lxml. Tests compare scan.py with this parser."""
