"""Hit rates of eviction policies on the ids of a training run: three epochs of a guide with default settings.

Counts distinct rows of batches in the second and third epoch. The ids are in order of descending frequency,
as in every corpus, or in random order. A plan waits if its transfers cannot overlap with all of the steps
that run meanwhile.
"""

EPOCHS, LOOKAHEAD, SHARES = 3, 2, (0.1, 0.2, 0.4)
