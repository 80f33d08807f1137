"""What each building block is worth: one taken away or swapped at a time, on the same folds and seeds."""
