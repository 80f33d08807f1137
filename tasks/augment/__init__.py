"""Stage augment: prepares vectors for unseen words, which are words that occur in no training title."""
