"""Reads and writes the files of artifacts. Each module is about one artifact or one kind of file."""
