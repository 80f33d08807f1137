"""Reads likes and watch histories of viewers from tables, and from exports and databases of media players."""
