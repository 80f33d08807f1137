"""Checkpoint to Lexicon: n-gram rows for words never seen."""
