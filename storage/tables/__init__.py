"""Where embedding rows and their optimizer state live."""
