"""The home folder: layout, lock, time zone, id, current guide and last result, retention."""
