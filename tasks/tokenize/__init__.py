"""Assigns titles to training and held-out sets, splits titles into tokens, and counts tokens."""
