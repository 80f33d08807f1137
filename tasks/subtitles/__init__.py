"""Classifies sub-titles with weak rules and a character-level recurrent network.

The classes are patterns such as episode number, part, date, guests or teams; rules.py has the list.
"""
