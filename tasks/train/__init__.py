"""Corpus to Checkpoint: objective, encoder, table, rule, runner."""
