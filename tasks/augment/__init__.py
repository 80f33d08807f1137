"""Augmentation: vectors of unseen words, from a Checkpoint to TitleEncoderFiles."""
