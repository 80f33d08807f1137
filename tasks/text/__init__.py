"""Cleans titles, removes additions such as "(New)", and splits titles into words and tokens."""
