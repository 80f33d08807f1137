"""What viewers like and what they have watched, read from tables and from the databases of media players."""
