"""How many processes: none where one process is faster.

Loading: what fits in memory is gathered by a thread while the training computes; fetching and copying a worker's batch
takes as much of a core as making it. Where the corpus does not fit, pages come from disk while the training waits, and workers
take that waiting upon themselves. docs/loading.md has the figures.
"""

from __future__ import annotations

import os

SHARE_OF_MEMORY = 0.5  # of what is free: rows, optimizer state and other programs need the rest
MOST_LOADING = 4  # more fetch no faster than one process can take


def choose_loading_workers(*, corpus_bytes: int, free_bytes: int, cores: int) -> int:
    """Processes that load batches.

    Args:
        corpus_bytes: Size of the arrays that batches are gathered from.
        free_bytes: Memory that can be had, page cache included.
        cores: That this process may use.

    Returns:
        0 where the corpus fits in memory, or where there is no core to spare; up to four where it does not fit.
    """
    return 0 if corpus_bytes <= SHARE_OF_MEMORY * free_bytes else min(cores - 1, MOST_LOADING)


def free_memory() -> int:
    """Bytes that can be had without swapping; where the system does not say, all there is."""
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
