"""Modules and optimizers of offloaded rows, compared with those of torch."""

import copy
from pathlib import Path
from typing import Literal

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from storage.tables import OffloadedEmbedding, OffloadedEmbeddingBag, RowsOptimizer
from tasks.optimizers import SGD, Adagrad

ROWS, DIM = 30, 4


def start() -> torch.Tensor:
    return torch.randn(ROWS, DIM, generator=torch.Generator().manual_seed(2))


def weight(embedding: nn.Module) -> torch.Tensor:
    return embedding.state_dict()["weight"].detach()


def id_batches(number: int = 12, size: int = 9) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(0, ROWS, (size,), generator=generator) for _ in range(number)]


def test_pretrained_rows_are_frozen_unless_an_optimizer_is_given():
    frozen = OffloadedEmbedding.from_pretrained(start(), cache_rows=5)
    vectors = frozen(torch.tensor([1, 29]))
    assert torch.equal(vectors, start()[[1, 29]]) and not vectors.requires_grad
    frozen.step()
    assert frozen.steps == 0
    with pytest.raises(ValueError, match=r"from_pretrained\(freeze=False\) needs an optimizer"):
        OffloadedEmbedding.from_pretrained(start(), freeze=False)
    ours = OffloadedEmbedding.from_pretrained(start(), freeze=False, optimizer=SGD(), cache_rows=5)
    ours(torch.tensor([3])).sum().backward()
    ours.step(0.5)
    assert torch.equal(weight(ours)[3], start()[3] - 0.5) and torch.equal(weight(ours)[4:], start()[4:])


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
def test_a_padding_row_gets_no_gradient(ahead: bool):
    dense = nn.Embedding(ROWS, DIM, padding_idx=-2, _weight=start())
    ours = OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=5, start=start(), padding_idx=-2)
    optimizer = torch.optim.SGD(dense.parameters(), lr=0.1)
    for ids in ours.prefetch(id_batches(), ids=lambda ids: ids) if ahead else id_batches():
        optimizer.zero_grad()
        dense(ids).square().sum().backward()
        optimizer.step()
        ours(ids).square().sum().backward()
        ours.step(0.1)
    assert any((ids == ROWS - 2).any() for ids in id_batches())
    torch.testing.assert_close(weight(ours), weight(dense))
    drawn = OffloadedEmbedding(ROWS, DIM, optimizer=Adagrad(), cache_rows=5, padding_idx=ROWS - 1)
    assert not weight(drawn)[ROWS - 1].any() and weight(drawn)[: ROWS - 1].any(1).all()


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
@pytest.mark.parametrize("last", [True, False], ids=["with last offset", ""])
@pytest.mark.parametrize("padding", [None, 7], ids=["", "padding"])
@pytest.mark.parametrize("mode", ["sum", "weighted sum", "mean", "max"])
def test_bags_are_those_of_torch(mode: str, padding: int | None, last: bool, ahead: bool):
    weighted, options = (
        "weighted" in mode,
        {"mode": mode.split()[-1], "include_last_offset": last, "padding_idx": padding},
    )
    dense = nn.EmbeddingBag(ROWS, DIM, _weight=start(), **options)
    ours = OffloadedEmbeddingBag(ROWS, DIM, optimizer=Adagrad(), cache_rows=5, start=start(), **options)
    optimizer = torch.optim.Adagrad(dense.parameters(), lr=0.1, eps=1e-10)
    offsets = torch.tensor([0, 0, 4, 9] if last else [0, 0, 4])  # the first bag is empty
    shares = torch.rand(9, requires_grad=True) if weighted else None
    for ids in ours.prefetch(id_batches(), ids=lambda ids: ids) if ahead else id_batches():
        vectors, expected = ours(ids, offsets, shares), dense(ids, offsets, shares)
        torch.testing.assert_close(vectors, expected)
        optimizer.zero_grad()
        grads = []
        for bags in (vectors, expected):
            bags.square().sum().backward()
            if shares is not None:
                grads.append(shares.grad)
                shares.grad = None
        optimizer.step()
        ours.step(0.1)
        if shares is not None:
            torch.testing.assert_close(*grads)
    torch.testing.assert_close(weight(ours), weight(dense), rtol=1e-4, atol=1e-5)


def test_bags_of_equal_size_and_no_bags():
    dense, ids = nn.EmbeddingBag(ROWS, DIM, _weight=start()), torch.arange(12).view(4, 3)
    ours = OffloadedEmbeddingBag(ROWS, DIM, optimizer=SGD(), cache_rows=5, start=start())
    torch.testing.assert_close(ours(ids), dense(ids))
    for wrong in (ids, torch.zeros(2, dtype=torch.int64)), (ids.flatten(), None):
        with pytest.raises(ValueError, match=r"pass ids \(bags, size\) without offsets, or ids \(any,\)"):
            ours(*wrong)
    none = torch.zeros(0, dtype=torch.int64)
    assert ours(none, none).shape == (0, DIM) and not ours(none, torch.zeros(2, dtype=torch.int64)).any()


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_weights_need_mode_sum(mode: Literal["mean", "max"]):
    bag, ids = OffloadedEmbeddingBag(ROWS, DIM, mode=mode, optimizer=SGD(), cache_rows=5), torch.ones(2, 3)
    with pytest.raises(ValueError, match="per_sample_weights need mode 'sum', got mode"):
        bag(ids.long(), per_sample_weights=ids)


def models() -> tuple[nn.Sequential, nn.Sequential, RowsOptimizer, list[torch.optim.Optimizer]]:
    """A model with nn.Embedding and one with offloaded rows; optimizers of the rows and of the rest."""
    torch.manual_seed(0)
    layer = nn.Linear(DIM, 3)
    dense = nn.Sequential(nn.Embedding(ROWS, DIM, _weight=start()), layer)
    embedding = OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=5, start=start())
    ours = nn.Sequential(embedding, copy.deepcopy(layer))
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.5) for model in (dense, ours)]
    return dense, ours, RowsOptimizer(embedding, lr=0.5), optimizers


def test_schedulers_clipping_and_hooks_treat_rows_as_parameters():
    dense, ours, rows, (of_dense, of_layer) = models()
    schedulers = [
        torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3),
                torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9),
            ],
            milestones=[3],
        )
        for optimizer in (rows, of_dense, of_layer)
    ]
    stepped = []
    rows.register_step_post_hook(lambda *arguments: stepped.append(rows.param_groups[0]["lr"]))
    for ids in ours[0].prefetch(id_batches(), ids=lambda ids: ids):
        norms = []
        for model in (dense, ours):
            half = len(ids) // 2  # two calls of the embedding
            F.softplus(torch.cat([model(ids[:half]), model(ids[half:])])).sum().backward()
            leaves = rows.param_groups[0]["params"] if model is ours else []
            norms.append(nn.utils.clip_grad_norm_([*model.parameters(), *leaves], 0.3))
        assert norms[0] > 0.3
        torch.testing.assert_close(*norms)
        for optimizer in (rows, of_dense, of_layer):
            optimizer.step()
            optimizer.zero_grad()
        for scheduler in schedulers:
            scheduler.step()
    assert rows.param_groups[0]["lr"] == of_dense.param_groups[0]["lr"] < 0.5 and len(set(stepped)) > 5
    torch.testing.assert_close(weight(ours[0]), weight(dense[0]))
    torch.testing.assert_close(weight(ours[1]), weight(dense[1]))


def test_hooks_of_modules_and_tensors_see_the_vectors():
    dense, ours, rows, _ = models()
    seen: dict[str, list] = {"forward": [], "backward": [], "gradient": []}
    for model in (dense, ours):
        embedding = model[0]
        embedding.register_forward_hook(lambda module, ids, vectors: seen["forward"].append(vectors.detach()))
        embedding.register_full_backward_hook(lambda module, into, out: seen["backward"].append(out[0]))
        vectors = model(torch.tensor([3, 3, 8])).square()
        vectors.register_hook(lambda grad: seen["gradient"].append(grad) or grad * 2)
        with pytest.warns(UserWarning, match="no inputs require gradients"):  # ids have none
            vectors.sum().backward()
    for first, second in seen.values():
        torch.testing.assert_close(first, second)
    (leaf,) = rows.param_groups[0]["params"]
    torch.testing.assert_close(leaf.grad, dense[0].weight.grad[[3, 8]])


def test_a_further_parameter_group_is_refused():
    *_, rows, _ = models()
    with pytest.raises(TypeError, match="pass all embeddings to the constructor"):
        rows.add_param_group({"params": [torch.zeros(2, requires_grad=True)]})


def test_the_norm_is_that_of_summed_gradients_outside_prefetch():
    dense, ours, rows, _ = models()
    for model in (dense, ours):
        model(torch.tensor([1, 2])).sum().backward()
        model(torch.tensor([2, 3])).sum().backward()
    (leaf,) = rows.param_groups[0]["params"]
    torch.testing.assert_close(leaf.grad, dense[0].weight.grad[1:4])


def test_grad_scaler_and_autocast_skip_a_step_that_is_not_finite():
    _, ours, rows, (_, of_layer) = models()
    scaler, before = torch.amp.GradScaler("cpu", init_scale=4.0), weight(ours[0]).clone()
    for factor in (torch.inf, 1.0):
        with torch.autocast("cpu", torch.bfloat16):
            loss = ours(torch.tensor([4, 4, 29])).sum() * factor
        scaler.scale(loss).backward()
        for optimizer in (rows, of_layer):
            scaler.step(optimizer)
            optimizer.zero_grad()
        scaler.update()
        assert ours[0].steps == (0 if factor == torch.inf else 1)
    assert scaler.get_scale() == 2.0
    moved = (weight(ours[0]) - before).abs().sum(1)
    assert moved.nonzero().flatten().tolist() == [4, 29]
    torch.testing.assert_close(moved[4], 2 * moved[29])  # twice in the batch; the scale is gone


def test_state_of_the_optimizer_is_restored(tmp_path: Path):
    _, ours, rows, _ = models()
    for _ in range(3):
        ours(torch.tensor([1])).sum().backward()
        assert rows.step(lambda: 7.0) == 7.0
    rows.param_groups[0]["lr"] = 0.125
    torch.save(rows.state_dict(), tmp_path / "optimizer.pt")
    other = RowsOptimizer(OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=5))
    assert other.param_groups[0]["lr"] == SGD().learning_rate
    other.load_state_dict(torch.load(tmp_path / "optimizer.pt"))
    assert other.param_groups[0]["lr"] == 0.125 and other.embeddings[0].steps == 3
    with pytest.raises(ValueError, match="the state has 1 groups, expected 2"):
        RowsOptimizer(ours[0], ours[0]).load_state_dict(rows.state_dict())


def test_a_deep_copy_is_refused_with_advice():
    with pytest.raises(
        TypeError, match="no deep copy, which would double its memory: build another embedding"
    ):
        copy.deepcopy(models()[1])
