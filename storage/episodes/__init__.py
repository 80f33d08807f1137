"""Season, episode and part numbers of programmes: the one parser for all that reads them."""
