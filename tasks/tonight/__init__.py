"""Recommends programmes of the evening to viewers, as lists, HTML pages and calendars."""
