"""Classifies the sub-titles of programmes by weak rules, a character-level recurrent network and n-grams.

The classes are called patterns, such as episode number, part, date, guests or teams. rules.py lists them.
"""
