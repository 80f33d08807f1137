"""The bundled sample guide and the script that makes it from hand-written lists."""
