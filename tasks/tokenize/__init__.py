"""Guide to Vocabulary: splits, then titles to typed tokens, counted."""
