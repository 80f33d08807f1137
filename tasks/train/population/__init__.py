"""Population-based training: alternates gradient steps with recombination and selection."""
