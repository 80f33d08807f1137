"""Who is near whom: the one blocked kernel and the search on top of it."""
