"""Resolves paths and URLs of feeds, and downloads and decompresses feeds."""
