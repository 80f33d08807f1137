"""Embeds the titles of a corpus as unit-norm vectors."""
