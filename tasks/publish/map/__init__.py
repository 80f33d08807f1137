"""The map: positions of titles, reasons of neighbours, content and HTML page."""
