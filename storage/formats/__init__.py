"""Reads and writes the files of artifacts; one module for each kind of artifact."""
