"""Resolves, downloads and decompresses feeds."""
