"""Parses the season, episode and part numbers of programmes."""
