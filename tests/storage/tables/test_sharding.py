"""Rows divided among two processes, compared with one process that accumulates the gradients of both."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from storage.tables import OffloadedEmbedding, OffloadedEmbeddingBag
from tasks.optimizers import Adam

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
COMMON = """
import torch
from tasks.optimizers import Adam

ROWS, DIM, STEPS, PROCESSES = 32, 4, 12, 2
OPTIONS = {"optimizer": Adam(learning_rate=0.1), "cache_rows": 6, "seed": 5, "padding_idx": 7}


def batches(process):
    generator = torch.Generator().manual_seed(process)
    draw = lambda *shape: (torch.rand(shape, generator=generator).square() * ROWS).long()
    # in the last batches, all ids of process 0 are even: no row of process 1
    return [
        (draw(5) if n < STEPS - 3 else draw(5) // 2 * 2, draw(4, 3), 1.0 + draw(4, 3)) for n in range(STEPS)
    ]


def loss_of(embedding, bag, batch):
    ids, bags, weights = batch
    return embedding(ids).square().sum() + bag(bags, None, weights).square().sum()


def ids_of(batch):
    return batch[0]


def bags_of(batch):
    return batch[1]
"""
PROCESS = (
    COMMON
    + """
import copy, json, sys
from pathlib import Path
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from storage.tables import OffloadedEmbedding, RowsOptimizer, ShardedEmbedding, ShardedEmbeddingBag

process, folder = int(sys.argv[1]), Path(sys.argv[2])
distributed.init_process_group("gloo", f"file://{folder}/rendezvous", rank=process, world_size=PROCESSES)
report = {}

# DistributedDataParallel around rows that are not sharded
model = nn.Sequential(OffloadedEmbedding(8, 2, optimizer=Adam(), cache_rows=4), nn.Linear(2, 2))
parallel = DistributedDataParallel(model)
parallel(torch.tensor([1])).sum().backward()
try:
    model[0].step()
except RuntimeError as error:
    report["replicated"] = str(error)

embedding = ShardedEmbedding(ROWS, DIM, **OPTIONS)
bag = ShardedEmbeddingBag(ROWS, DIM, mode="sum", **OPTIONS)
optimizer = RowsOptimizer(embedding, bag)
mine = batches(process)
# one more batch in process 1: the loop ends when process 0 has no further batch
mine += mine[:process]
for batch, _ in zip(embedding.prefetch(mine, ids_of), bag.prefetch(mine, bags_of)):
    loss_of(embedding, bag, batch).backward()
    optimizer.step()
report["steps"] = embedding.steps, bag.steps
for name, module in ("embedding", embedding), ("bag", bag):
    module.save(folder / f"{name}-{process}")

# a loop that is left early in both processes, and a gradient that is not finite in one
for batch in embedding.prefetch(mine, ids_of):
    break
try:
    (embedding(torch.tensor([2])) * (float("inf") if process else 1.0)).sum().backward()
    embedding.step()
except ArithmeticError as error:
    report["not finite"] = str(error)
report["steps after it"] = embedding.steps

try:
    embedding.load(folder / f"embedding-{1 - process}")
except ValueError as error:
    report["file of the other process"] = str(error)
distributed.barrier()
embedding.load(folder / f"embedding-{process}")
try:
    embedding(torch.tensor([ROWS]))
except IndexError as error:
    report["id"] = str(error)
(folder / f"report-{process}").write_text(json.dumps(report))
distributed.barrier()  # the other process may still be connecting
distributed.destroy_process_group()
"""
)


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sharded")
    command = [sys.executable, "-c", PROCESS]
    options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    started = [subprocess.Popen([*command, str(n), str(folder)], **options) for n in range(2)]
    outputs = [process.communicate(timeout=100)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    return folder


def reports(folder: Path) -> list[dict]:
    return [json.loads((folder / f"report-{process}").read_text()) for process in range(2)]


@pytest.mark.slow
def test_rows_and_state_are_those_of_one_process_bit_for_bit(two_processes: Path):
    """The process accumulates the gradients of both batches; halves of them, since they are averaged."""
    space: dict = {}
    exec(COMMON, space)
    embedding = OffloadedEmbedding(space["ROWS"], space["DIM"], **space["OPTIONS"])
    bag = OffloadedEmbeddingBag(space["ROWS"], space["DIM"], mode="sum", **space["OPTIONS"])
    for pair in zip(space["batches"](0), space["batches"](1)):
        for batch in pair:
            (space["loss_of"](embedding, bag, batch) / 2).backward()
        embedding.step()
        bag.step()
    for name, module in ("embedding", embedding), ("bag", bag):
        for process in range(2):
            file = two_processes / f"{name}-{process}"
            saved = load_file(file)
            with safe_open(file, "pt") as opened:
                assert json.loads(opened.metadata()["embedding"])["steps"] == space["STEPS"]
            expected = {key: section.tensor() for key, section in module.table.sections().items()}
            assert set(saved) == set(expected) == {"rows", "state.first", "state.second"}
            for key, tensor in saved.items():  # the optimizer state is with its rows
                assert torch.equal(tensor, expected[key][process::2]), (name, process, key)
    assert [report["steps"] for report in reports(two_processes)] == [[space["STEPS"]] * 2] * 2


def test_distributed_data_parallel_is_refused(two_processes: Path):
    for report in reports(two_processes):
        assert "its rows would diverge; use ShardedEmbedding, or train it in one" in report["replicated"]


def test_failures_of_one_process_are_errors_of_both(two_processes: Path):
    first, second = reports(two_processes)
    assert "for 1 rows, the first is 2; no row was changed" in first["not finite"]  # the owner of row 2
    assert "in another process; no row was changed" in second["not finite"]
    for report in (first, second):
        assert report["steps after it"] == report["steps"][0]
        assert "the file has rows of {'process':" in report["file of the other process"]
        assert report["id"] == "id 32 is not in the embedding, which has 32 rows"


def test_a_process_group_is_required():
    from storage.tables import ShardedEmbedding

    with pytest.raises(RuntimeError, match=r"call torch\.distributed\.init_process_group before"):
        ShardedEmbedding(8, 2, optimizer=Adam())
