"""TitleEncoderFiles to Vectors: a unit-norm vector a title."""
