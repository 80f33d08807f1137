"""Artifact formats, one module each: files, columns, dtypes and shapes, with readers and writers."""
