"""XMLTV by lxml, for frames that scan.py does not accept; the reference that it is tested against."""
