"""Reads likes and watch histories of viewers from tables, exports and databases of media players."""
