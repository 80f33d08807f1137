"""Draws the plots of a nightly run (plots.html) from its artifacts."""
