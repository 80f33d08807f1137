"""From what a user names to bytes of guides: resolve, download, decompress."""
