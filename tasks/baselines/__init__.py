"""What the space has to beat, given the same titles."""
