"""Makes the map of titles: their positions, the reasons why neighbours are similar, and the HTML page."""
