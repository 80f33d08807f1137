"""How many processes load: the border is where it was measured."""

import pytest

from tasks.pool import cores
from tasks.preprocess.workers import choose_loading_workers, free_memory

GB = 10**9


@pytest.mark.parametrize(
    ("corpus", "free", "cores", "expected"),
    [
        (10_000_000, 8 * GB, 2, 0),  # a night of four guides: in this process
        (4 * GB, 8 * GB, 8, 0),
        (4 * GB + 1, 8 * GB, 2, 1),  # does not fit
        (40 * GB, 8 * GB, 4, 3),
        (40 * GB, 8 * GB, 64, 4),
        (40 * GB, 8 * GB, 1, 0),  # no core to spare
    ],
)
def test_the_border(corpus: int, free: int, cores: int, expected: int):
    assert choose_loading_workers(corpus_bytes=corpus, free_bytes=free, cores=cores) == expected


def test_this_machine_is_seen():
    assert cores() >= 1 and free_memory() > 10**8
