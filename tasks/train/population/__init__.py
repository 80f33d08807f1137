"""Training as a population of learners: gradient steps in turn with recombination and selection."""
