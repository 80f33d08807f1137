"""Search for similar titles, and explanations of their similarity."""
