"""WHAT happens and in which order."""
