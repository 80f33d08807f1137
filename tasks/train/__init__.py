"""Stage train: learns an embedding row for each token from titles and their categories."""
