"""Searches for programme titles similar to a given one, and explains why two titles are similar."""
