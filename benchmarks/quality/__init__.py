"""How good title vectors and similarity lists are."""
