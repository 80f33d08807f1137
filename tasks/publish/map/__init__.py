"""Makes the map of titles: positions, reasons why neighbours are similar, and the HTML page."""
