"""One file per artifact format: files, columns, dtypes and shapes; how to open and write them."""
