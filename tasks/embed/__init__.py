"""Stage embed: computes a unit-norm vector of each title of a corpus."""
