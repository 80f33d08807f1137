"""Searches for titles that are similar to a title, and explains why two titles are similar."""
