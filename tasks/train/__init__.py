"""Corpus to Checkpoint: objective, encoder, table, optimizer and the training loop."""
