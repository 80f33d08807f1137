"""Tables of PyTorch, FBGEMM, TorchRec and PyTorch-BigGraph, trained with the steps of our benchmarks.

Needs torch, NumPy, safetensors, pyarrow and the measured library, so that the interpreter of another
environment can run ``python -m benchmarks.offload.libraries``, which prints one line of JSON.
"""

import argparse
import importlib.metadata
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.offload.steps import DIM, Measured, batches, timed, triplet_loss, zipf
from benchmarks.processes import peak
from storage.tables import OffloadedEmbeddingBag, Section, as_section, random_rows
from tasks.encoder.bags import Bags
from tasks.optimizers import Adagrad, Adam, RowwiseAdagrad

CPU = torch.device("cpu")
RULES = {"adagrad": Adagrad(), "rowwise_adagrad": RowwiseAdagrad(), "adam": Adam()}
EXACT = 480, 50  # rows and steps of the comparison with nn.EmbeddingBag
WARM = 4  # steps that are not timed


def no_prefetch(bags: Iterable[Bags]) -> Iterable[Bags]:
    """Returns the batches as they are."""
    return bags


@dataclass(frozen=True)
class Library:
    """A table of a library, with an optimizer.

    Attributes:
        sums: Returns the sums of the rows of bags, (bags, dim), for ids and offsets.
        learn: Updates the rows by a loss.
        rows: Returns all rows, (rows, dim).
        prefetch: Iterates over batches.
    """

    sums: Callable[[Tensor, Tensor], Tensor]
    learn: Callable[[Tensor], object]
    rows: Callable[[], Tensor]
    prefetch: Callable[[Iterable[Bags]], Iterable[Bags]] = no_prefetch


def embedding_bag(
    start: Section, optimizer: Callable[..., Any], device: torch.device = CPU, *, sparse: bool = True
) -> Library:
    """Returns nn.EmbeddingBag with an optimizer of torch, which gets the parameters."""
    table = nn.EmbeddingBag.from_pretrained(
        start.tensor(device), freeze=False, mode="sum", sparse=sparse, include_last_offset=True
    )
    updates = optimizer(table.parameters())

    def learn(loss: Tensor) -> None:
        updates.zero_grad()
        loss.backward()
        updates.step()

    return Library(table, learn, lambda: table.weight.detach())


def _torch(start: Section, rule: Any) -> Library:
    options: dict[str, Any] = {"lr": rule.learning_rate, "eps": rule.epsilon}
    kinds = {"adam": torch.optim.SparseAdam, "adagrad": torch.optim.Adagrad}
    return embedding_bag(start, partial(kinds[rule.name], **options))


def _biggraph(start: Section, rule: Any) -> Library:
    """Returns the optimizer of PyTorch-BigGraph, whose epsilon is 1e-10, with a table of torch."""
    from torchbiggraph.row_adagrad import RowAdagrad  # pyright: ignore[reportMissingImports]

    return embedding_bag(start, partial(RowAdagrad, lr=rule.learning_rate))


def fbgemm(start: Section, rule: Any, device: torch.device = CPU, share: float = 1.0) -> Library:
    """Returns FBGEMM's table, whose backward pass updates the rows.

    On a GPU, it is in managed memory with a share of its rows cached; otherwise, it is in host memory.
    """
    from fbgemm_gpu import split_table_batched_embeddings_ops_common as common  # pyright: ignore
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as ops  # pyright: ignore

    cached = common.EmbeddingLocation.MANAGED_CACHING, ops.ComputeDevice.CUDA
    place = cached if device.type == "cuda" else (common.EmbeddingLocation.HOST, ops.ComputeDevice.CPU)
    rules = {"adagrad": "EXACT_ADAGRAD", "rowwise_adagrad": "EXACT_ROWWISE_ADAGRAD", "adam": "ADAM"}
    table = ops.SplitTableBatchedEmbeddingBagsCodegen(
        [(*start.shape, *place)],
        feature_table_map=[0],
        optimizer=getattr(ops.OptimType, rules[rule.name]),
        learning_rate=rule.learning_rate,
        eps=rule.epsilon,
        cache_load_factor=share,
        pooling_mode=common.PoolingMode.SUM,
    )
    start.copy_to(table.split_embedding_weights()[0])
    return Library(table, Tensor.backward, lambda: table.split_embedding_weights()[0])


def _torchrec(start: Section, rule: Any) -> Library:
    """Returns TorchRec's collection of one table, which updates rows in the backward pass by FBGEMM."""
    from torchrec.modules.embedding_configs import EmbeddingBagConfig  # pyright: ignore
    from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection  # pyright: ignore
    from torchrec.optim import RowWiseAdagrad  # pyright: ignore
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor  # pyright: ignore

    kinds = {"adagrad": torch.optim.Adagrad, "rowwise_adagrad": RowWiseAdagrad}
    rows, dim = start.shape
    config = EmbeddingBagConfig(name="t", embedding_dim=dim, num_embeddings=rows, feature_names=["f"])
    options = {"lr": rule.learning_rate, "eps": rule.epsilon}
    table = FusedEmbeddingBagCollection([config], kinds[rule.name], options, device=CPU)
    (weight,) = table.parameters()
    start.copy_to(weight.detach())

    def sums(ids: Tensor, offsets: Tensor) -> Tensor:
        return table(KeyedJaggedTensor.from_offsets_sync(["f"], ids, offsets))["f"]

    return Library(sums, Tensor.backward, weight.detach)


def _ours(start: Section, rule: Any, share: float) -> Library:
    rows, dim = start.shape
    options: dict[str, Any] = {"mode": "sum", "include_last_offset": True}
    table = OffloadedEmbeddingBag(
        rows, dim, optimizer=rule, cache_rows=int(share * rows), device=CPU, start=0.0, **options
    )
    table.table.start_from(start, rule)

    def learn(loss: Tensor) -> None:
        loss.backward()
        table.step()

    def prefetch(bags: Iterable[Bags]) -> Iterable[Bags]:
        return table.prefetch(bags, lambda batch: batch.ids)

    return Library(table, learn, table.table.sections()["rows"].tensor, prefetch)


@dataclass(frozen=True)
class Rival:
    """How a library is built, the distribution that has its version, and its optimizers on a CPU."""

    build: Callable[[Section, Any], Library]
    distribution: str
    optimizers: Sequence[str] = tuple(RULES)


LIBRARIES = {
    "ours, 5 % cached": Rival(partial(_ours, share=0.05), "torch"),
    "ours, all cached": Rival(partial(_ours, share=1.0), "torch"),
    "nn.EmbeddingBag(sparse=True)": Rival(_torch, "torch", ("adagrad", "adam")),
    "FBGEMM": Rival(fbgemm, "fbgemm-gpu-cpu", ("adagrad", "rowwise_adagrad")),
    "TorchRec": Rival(_torchrec, "torchrec", ("adagrad", "rowwise_adagrad")),
    "PyTorch-BigGraph": Rival(_biggraph, "torchbiggraph", ("rowwise_adagrad",)),
}


def train_library(
    library: Library, bags: Sequence[Bags], device: torch.device = CPU, warm: int = WARM
) -> Measured:
    """Trains triplet steps of a table that itself sums the rows of bags."""

    def losses() -> Iterator[Tensor]:
        for batch in library.prefetch(bags):
            batch = batch.to(device)
            sums = library.sums(batch.ids[batch.tokens], batch.offsets)
            loss = triplet_loss(nn.functional.normalize(sums, dim=1))
            library.learn(loss)
            yield loss.detach()

    return timed(losses(), device, warm)


def differing_values(build: Callable[[Section, Any], Library], rule: Any) -> tuple[float, float]:
    """Compares rows after training with nn.EmbeddingBag and torch.optim.

    Each batch has every row once, so that lazy and dense updates are equal and no gradients are added. The
    learning rate is a power of two, which is the same number in float32 and float64.

    Returns:
        The share of values that differ in a bit, in percent, and the largest difference.
    """
    rows, steps = EXACT
    rule = replace(rule, learning_rate=0.125)

    def draw(rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.permutation(rows)

    start = as_section(random_rows(rows, DIM, 0.1, 1).tensor())
    bags = batches(draw, rows, rows, steps)
    reference = embedding_bag(start, partial(_DENSE[rule.name], rule), sparse=False)
    ours = build(start, rule)
    for library in (reference, ours):
        train_library(library, bags)
    difference = (reference.rows() - ours.rows()).abs()
    return 100 * float((difference > 0).double().mean()), float(difference.max())


class _DenseRowwiseAdagrad(torch.optim.Optimizer):
    """Row-wise Adagrad, which torch.optim lacks, with the rounding of the one in TorchRec."""

    def __init__(self, rule: RowwiseAdagrad, parameters: Iterable[Tensor]) -> None:
        super().__init__(parameters, {"lr": rule.learning_rate})
        (self.rows,) = self.param_groups[0]["params"]
        self.total, self.rule = torch.zeros(len(self.rows), 1), rule

    @torch.no_grad()
    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.total += self.rows.grad.square().mean(1, keepdim=True)
        self.rows += -self.rule.learning_rate * self.rows.grad / (self.total.sqrt() + self.rule.epsilon)


_DENSE: dict[str, Callable[..., Any]] = {
    "adagrad": lambda rule, rows: torch.optim.Adagrad(
        rows, rule.learning_rate, eps=rule.epsilon, foreach=False
    ),
    "adam": lambda rule, rows: torch.optim.Adam(rows, rule.learning_rate, eps=rule.epsilon, foreach=False),
    "rowwise_adagrad": _DenseRowwiseAdagrad,
}


@dataclass(frozen=True)
class Result:
    """Result of a process.

    Attributes:
        version: Version of the library.
        seconds: Median seconds per step.
        cpu_seconds: CPU seconds per step, of all threads.
        memory: Peak memory beyond imports and batches, MiB.
        differing: Share of values that differ from torch.optim, %.
        difference: Largest of these differences.
    """

    version: str
    seconds: float
    cpu_seconds: float
    memory: float
    differing: float
    difference: float


def measure_library(name: str, rule: Any, rows: int, tokens: int, steps: int) -> Result:
    """Measures a library in this process, whose peak of memory it reads."""
    rival = LIBRARIES[name]
    bags = batches(zipf, rows, tokens, WARM + steps)
    differing = differing_values(rival.build, rule)  # also warms up
    before = peak()
    library = rival.build(random_rows(rows, DIM, 0.1, 1), rule)
    train_library(library, bags[:WARM])
    begun = time.process_time()
    measured = train_library(library, bags[WARM - 1 :], warm=0)  # no time of the first step
    cpu, memory = time.process_time() - begun, peak() - before
    version = importlib.metadata.version(rival.distribution)
    return Result(version, measured.median, cpu / (steps + 1), memory, *differing)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.offload.libraries", description=__doc__)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("optimizer", choices=RULES)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--ids", type=int, default=98_304, help="per step")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rule = RULES[options.optimizer]
    try:
        result = measure_library(options.library, rule, options.rows, options.ids, options.steps)
    except (ImportError, OSError) as error:  # OSError: FBGEMM for another torch
        print(json.dumps({"missing": f"{type(error).__name__}: {error}"}))
    else:
        print(json.dumps(asdict(result)))


if __name__ == "__main__":
    main()
