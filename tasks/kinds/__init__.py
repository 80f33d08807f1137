"""Determines the kind of a programme: film, series, news, sport, children, music or other."""
