"""Vocabulary to Corpus: token ids as memory-mapped ragged arrays."""
