"""Cleans titles, removes marks, and splits titles into words and tokens."""
