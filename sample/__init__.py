"""The bundled sample guide, and the script that generates it from hand-written lists."""
