"""Manages the home folder: layout, lock, time zone, id, current guide, latest results, clean-up."""
