"""Stage train: learns the embedding rows of all tokens from the categories of titles."""
