"""Merges several XMLTV guides into one guide for TV players, with selected channels and sorted programmes."""
