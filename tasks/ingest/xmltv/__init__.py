"""The XMLTV reader: a scanner for the common form of a guide, lxml (fallback/) for every other."""
