"""Title text to words and tokens."""
