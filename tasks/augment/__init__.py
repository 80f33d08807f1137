"""Checkpoint to TitleEncoderFiles: vectors for words never seen."""
