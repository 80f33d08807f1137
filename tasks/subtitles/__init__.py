"""Classifies the sub-titles of programmes by weak rules and a character-level recurrent network.

The classes are patterns such as episode number, part, date, guests or teams; rules.py lists them.
"""
