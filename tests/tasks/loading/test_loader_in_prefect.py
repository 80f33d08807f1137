"""Workers of the loader inside a Prefect task, where a forked child dies: called in the flow's process, and
submitted to a thread."""

from pathlib import Path

import pytest
import torch

from tasks.loading.loader import Batch, BatchLoader
from tasks.train.objectives import LeaveOneOutSoftmax


def load(corpus: Path, workers: int) -> list[Batch]:
    """Loads two epochs with the same workers."""
    loader = BatchLoader(corpus, LeaveOneOutSoftmax(pack=4, packs=10), dropout=0.4, seed=1, workers=workers)
    return [batch for epoch in range(2) for batch in loader.epoch(epoch)[1]]


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_api")
def test_workers_load_inside_a_prefect_task(toy_corpus: Path):
    from prefect import flow, task

    found: dict[str, list[Batch]] = {}

    @task(persist_result=False)
    def loading(how: str) -> int:
        found[how] = load(toy_corpus, 2)
        return len(found[how])

    @flow
    def loads() -> int:
        return loading("called") + loading.submit("submitted").result()

    here = load(toy_corpus, 0)
    assert loads() == 2 * len(here)
    for made in found.values():
        for one, other in zip(here, made, strict=True):
            assert all(
                torch.equal(first, second)
                for part, same in zip(one, other, strict=True)
                for first, second in zip(part, same, strict=True)
            )
