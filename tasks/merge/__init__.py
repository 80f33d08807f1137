"""Merges XMLTV files into one guide for players: chosen channels, sources in order of priority, sorted."""
