"""Augmentation: fits vectors of unseen words to a Checkpoint; the result is TitleEncoderFiles."""
