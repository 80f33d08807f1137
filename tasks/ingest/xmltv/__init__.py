"""Reads XMLTV: a scanner for the most common form of a guide, lxml (fallback/) for all others."""
