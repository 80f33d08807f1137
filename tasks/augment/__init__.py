"""Checkpoint to TitleEncoderFiles: n-gram rows for words never seen."""
