"""Trains a Checkpoint on a Corpus: objective, encoder, table, optimizer and the training loop."""
