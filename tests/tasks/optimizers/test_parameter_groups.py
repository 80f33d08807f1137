"""One groups for embedding rows and dense layers: a small GRU over words that learns to tell
categories."""

import pytest
import torch
from torch import nn

from storage.tables import Resident
from tasks.optimizers import SGD, Adagrad, Adam, AdamW, Momentum, NAdam, RowwiseAdagrad
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.clipping import ClipByNorm
from tasks.optimizers.parameter_groups import (
    DenseParameters,
    NonFiniteGradient,
    ParameterGroup,
    ParameterGroups,
)
from tasks.train.settings import TrainSettings
from tests.worlds import titles

DIM, BATCH = 12, 48


class Titles:
    """The toy world's titles as word ids (titles, 3), and their categories."""

    def __init__(self) -> None:
        named = titles()
        words, categories = (
            sorted({word for title, _ in named for word in title.split()}),
            sorted({category for _, category in named}),
        )
        self.words = torch.tensor([[words.index(word) for word in title.split()] for title, _ in named])
        self.categories = torch.tensor([categories.index(category) for _, category in named])
        self.vocabulary = len(words)


class Reader(nn.Module):
    """Word vectors through a GRU to a category."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(DIM, 16, batch_first=True)
        self.head = nn.Linear(16, 3)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(vectors)[1][0]) * self.temperature


class Learning:
    """Rows in a table, a module, one set of parameter groups."""

    def __init__(self, world: Titles, **options) -> None:
        torch.manual_seed(1)
        self.world, self.module = world, Reader()
        parameters = dict(self.module.named_parameters())
        self.groups = ParameterGroups(["rows", *parameters], TrainSettings(**{"groups": (), **options}))
        rows = torch.randn(world.vocabulary, DIM) * 0.1
        self.table = Resident(rows, self.groups.updaters["rows"].initial_state(rows))
        self.dense = DenseParameters(parameters, self.groups)

    def run(self, first: int, last: int) -> float:
        """Steps ``first`` to ``last`` (counted from 1); the last loss."""
        for step in range(first, last + 1):
            chosen = torch.randperm(len(self.world.words), generator=torch.Generator().manual_seed(step))[
                :BATCH
            ]
            ids, local = self.world.words[chosen].unique(return_inverse=True)
            rows, state = self.table.gather(ids)
            rows.requires_grad_()
            loss = nn.functional.cross_entropy(self.module(rows[local]), self.world.categories[chosen])
            loss.backward()
            moved = rows.detach()
            self.groups.update_(
                {
                    "rows": ParameterUpdate(moved, rows.grad, state, table_rows=len(self.table)),
                    **self.dense.updates(),
                },
                1.0,
                step,
            )
            self.table.write_back(ids, moved, state)
        return loss.item()

    def accuracy(self) -> float:
        with torch.no_grad():
            return (
                (self.module(self.table.rows[self.world.words]).argmax(1) == self.world.categories)
                .float()
                .mean()
                .item()
            )

    def tensors(self) -> dict[str, torch.Tensor]:
        return {**self.table.tensors(), **self.dense.tensors(), **self.groups.tensors()}


@pytest.fixture(scope="module")
def world() -> Titles:
    return Titles()


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": Adam(learning_rate=0.02)},
        {"optimizer": Adam(learning_rate=0.02), "per_row_steps": True},
        {"optimizer": Momentum(learning_rate=0.3), "clipping": ClipByNorm(max_norm=1.0)},
        {
            "optimizer": RowwiseAdagrad(learning_rate=0.1),
            "groups": (
                ParameterGroup(pattern="gru.*", optimizer=NAdam(learning_rate=0.02)),
                ParameterGroup(pattern="*", optimizer=Adagrad()),
            ),
        },
        {
            "optimizer": AdamW(learning_rate=0.02),
            "groups": (ParameterGroup(pattern="rows", optimizer=RowwiseAdagrad(learning_rate=0.1)),),
        },
    ],
    ids=["one optimizer", "own steps", "one optimizer, clipped", "three optimizers", "two optimizers"],
)
def test_rows_and_dense_layers_train_together(world: Titles, options: dict):
    learning = Learning(world, **options)
    before = {
        name: tensor.clone() for name, tensor in learning.dense.tensors().items() if ".state." not in name
    }
    assert learning.accuracy() < 0.6
    learning.run(1, 40)
    assert learning.accuracy() > 0.97
    assert not any(
        torch.equal(tensor, before[name])
        for name, tensor in learning.dense.tensors().items()
        if name in before
    )


def test_it_is_torch_where_every_row_is_touched(world: Titles):
    """Same module, same titles each step: torch.optim.Adam over embedding and layers, to the bit."""
    learning = Learning(world, optimizer=Adam(learning_rate=0.0625))
    torch.manual_seed(1)
    module = Reader()
    embedding = nn.Parameter(torch.randn(world.vocabulary, DIM) * 0.1)
    theirs = torch.optim.Adam([embedding, *module.parameters()], lr=0.0625, foreach=False)
    ids = torch.arange(world.vocabulary)
    for step in range(1, 6):
        theirs.zero_grad()
        nn.functional.cross_entropy(module(embedding[world.words]), world.categories).backward()
        theirs.step()
        rows, state = learning.table.gather(ids)
        rows.requires_grad_()
        nn.functional.cross_entropy(learning.module(rows[world.words]), world.categories).backward()
        moved = rows.detach()
        learning.groups.update_(
            {"rows": ParameterUpdate(moved, rows.grad, state), **learning.dense.updates()}, 1.0, step
        )
        learning.table.write_back(ids, moved, state)
    assert torch.equal(learning.table.rows, embedding.detach())
    for ours, other in zip(learning.module.parameters(), module.parameters(), strict=True):
        assert torch.equal(ours, other)


def test_a_copied_state_goes_on_to_the_same_bits(world: Titles):
    options = {
        "optimizer": AdamW(learning_rate=0.02),
        "groups": (ParameterGroup(pattern="rows", optimizer=RowwiseAdagrad()),),
        "per_row_steps": True,
    }
    whole, stopped, resumed = (Learning(world, **options) for _ in range(3))
    whole.run(1, 20)
    stopped.run(1, 8)
    for name, tensor in resumed.tensors().items():
        tensor.copy_(stopped.tensors()[name])
    resumed.run(9, 20)
    assert all(torch.equal(tensor, resumed.tensors()[name]) for name, tensor in whole.tensors().items())
    assert {"gru.bias_hh_l0.state.first", "temperature.state.steps", "state.sum", "state.steps"} <= set(
        whole.tensors()
    )


def test_the_first_pattern_that_matches_counts(world: Titles):
    groups = (
        ParameterGroup(pattern="*.bias*", optimizer=Adam()),
        ParameterGroup(pattern="gru.*", optimizer=Adagrad()),
    )
    learning = Learning(world, optimizer=SGD(), groups=groups)
    chosen = {name: updater.optimizer.name for name, updater in learning.groups.updaters.items()}
    assert chosen == {
        **dict.fromkeys(["rows", "temperature", "head.weight"], "sgd"),
        **dict.fromkeys(["gru.weight_ih_l0", "gru.weight_hh_l0"], "adagrad"),
        **dict.fromkeys(["gru.bias_ih_l0", "gru.bias_hh_l0", "head.bias"], "adam"),
    }


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(
        ValueError,
        match=r"the pattern 'grue\.\*' of a parameter group matches nothing; the parameters are rows, gru\.b",
    ):
        ParameterGroups(
            ["rows", "gru.bias"], TrainSettings(optimizer=SGD(), groups=(ParameterGroup(pattern="grue.*"),))
        )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("spoilt", ["rows", "gru.weight"])
def test_nothing_is_updated_when_one_gradient_is_not_finite(spoilt: str, value: float):
    groups = ParameterGroups(
        ["rows", "gru.weight"], TrainSettings(optimizer=Adam(), per_row_steps=True, groups=())
    )
    updates = {}
    for name in ("rows", "gru.weight"):
        rows = torch.ones(4, 3)
        updates[name] = ParameterUpdate(rows, torch.ones(4, 3), groups.updaters[name].initial_state(rows))
    updates[spoilt].grad[[1, 3], [0, 2]] = value
    with pytest.raises(
        NonFiniteGradient,
        match=f"non-finite gradient for {spoilt} in 2 rows, the first is 1",
    ) as caught:
        groups.update_(updates, 1.0, 1)
    assert caught.value.rows == [1, 3]
    for update in updates.values():
        assert torch.equal(update.rows, torch.ones(4, 3)) and all(
            not tensor.any() for tensor in update.state.values()
        )


def test_gradients_whose_sum_alone_is_too_large_pass():
    groups, rows = (
        ParameterGroups(["rows"], TrainSettings(optimizer=Adam(learning_rate=0.5), groups=())),
        torch.zeros(4, 3),
    )
    groups.update_(
        {
            "rows": ParameterUpdate(
                rows, torch.full((4, 3), 2e38), groups.updaters["rows"].initial_state(rows)
            )
        },
        1.0,
        1,
    )
    assert torch.isfinite(rows).all()
