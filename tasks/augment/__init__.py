"""Stage augment: fits vectors of words that occur in no training title (unseen words) to trained rows."""
