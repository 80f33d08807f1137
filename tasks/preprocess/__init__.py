"""Converts a Vocabulary to a Corpus: token ids, labels and sentence vectors as memory-mapped arrays."""
