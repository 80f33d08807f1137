"""Parses season, episode and part numbers of programmes, for all stages."""
