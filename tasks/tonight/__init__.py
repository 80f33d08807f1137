"""Recommends programmes of an evening to viewers, as lists, HTML pages and calendars."""
