"""Stage tokenize: splits titles into training and held-out sets, and counts their tokens."""
