"""Implements the command line of GuideSpace, with one file per command or group of commands."""
