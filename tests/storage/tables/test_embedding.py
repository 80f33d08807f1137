"""OffloadedEmbedding compared with nn.Embedding and the optimizers of torch."""

import copy
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from storage.tables import OffloadedEmbedding
from storage.tables.segment_sums import segment_sum
from tasks.optimizers import SGD, Adagrad, Adam

ROWS, DIM = 50, 6


def batches(number: int = 40, seed: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Makes pairs of id tensors, with duplicates within and between them."""
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randint(0, ROWS, (4, 3), generator=generator), torch.randint(0, 20, (4,), generator=generator))
        for _ in range(number)
    ]


def loss_of(embedding, pair) -> torch.Tensor:
    left, right = embedding(pair[0]).mean(1), embedding(pair[1])
    return F.softplus(-(left * right).sum(1) + right.square().sum(1)).sum()


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
@pytest.mark.parametrize("cache_rows", [50, 12])
def test_trained_rows_equal_those_of_a_dense_embedding(ahead: bool, cache_rows: int):
    """Adagrad moves only what has a gradient, so the dense optimizer does the same; sums in another order
    differ in the last place."""
    dense = nn.Embedding(ROWS, DIM)
    ours = OffloadedEmbedding(
        ROWS,
        DIM,
        optimizer=Adagrad(learning_rate=0.1),
        cache_rows=cache_rows,
        start=dense.weight.detach().clone(),
    )
    optimizer = torch.optim.Adagrad(dense.parameters(), lr=0.1, eps=ours.optimizer.epsilon)
    for pair in batches():
        optimizer.zero_grad()
        loss_of(dense, pair).backward()
        optimizer.step()
    for pair in ours.prefetch(batches(), ids=lambda pair: pair) if ahead else batches():
        loss_of(ours, pair).backward()
        ours.step()
    assert ours.steps == 40
    torch.testing.assert_close(ours.state_dict()["weight"], dense.weight.detach(), rtol=1e-4, atol=1e-5)


def test_the_size_of_the_cache_changes_no_bit():
    found = []
    for cache_rows in (50, 12, 1):
        embedding = OffloadedEmbedding(ROWS, DIM, optimizer=Adam(), cache_rows=cache_rows, seed=4)
        for pair in embedding.prefetch(batches(), ids=lambda pair: pair):
            loss_of(embedding, pair).backward()
            embedding.step(0.05)
        found.append(embedding.state_dict()["weight"])
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_the_state_dict_is_compatible_with_nn_embedding(tmp_path: Path):
    plain = nn.Sequential(nn.Embedding(ROWS, DIM), nn.Linear(DIM, 2))
    ours = nn.Sequential(OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=9), nn.Linear(DIM, 2))
    ours.load_state_dict(plain.state_dict())
    assert list(ours.state_dict()) == list(plain.state_dict())
    assert torch.equal(ours(torch.arange(ROWS)), plain(torch.arange(ROWS)))
    ours(torch.tensor([3, 40])).sum().backward()
    ours[0].step(0.5)
    torch.save(ours.state_dict(), tmp_path / "model.pt")
    plain.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert torch.equal(plain(torch.arange(ROWS)), ours(torch.arange(ROWS)))
    with pytest.raises(RuntimeError, match=r"0\.weight has shape \(7, 6\), expected \(50, 6\)"):
        ours.load_state_dict({**plain.state_dict(), "0.weight": torch.zeros(7, 6)})
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"0\.typo"'):
        ours.load_state_dict({**plain.state_dict(), "0.typo": torch.zeros(1)})
    ours.load_state_dict({**plain.state_dict(), "0.typo": torch.zeros(1)}, strict=False)
    with pytest.raises(RuntimeError, match="Missing key"):
        ours.load_state_dict(
            {name: tensor for name, tensor in plain.state_dict().items() if name != "0.weight"}
        )


def test_a_saved_embedding_continues_with_the_same_bits(tmp_path: Path):
    whole, stopped, resumed = (
        OffloadedEmbedding(ROWS, DIM, optimizer=Adam(), cache_rows=size) for size in (50, 20, 7)
    )
    for embedding, part in ((whole, batches()), (stopped, batches()[:15])):
        for pair in embedding.prefetch(part, ids=lambda pair: pair):
            loss_of(embedding, pair).backward()
            embedding.step()
    stopped.save(tmp_path / "rows.safetensors")
    resumed.load(tmp_path / "rows.safetensors")
    for pair in resumed.prefetch(batches()[15:], ids=lambda pair: pair):
        loss_of(resumed, pair).backward()
        resumed.step()
    assert torch.equal(resumed.state_dict()["weight"], whole.state_dict()["weight"]) and resumed.steps == 40
    with pytest.raises(ValueError, match="it was saved with another size, type or optimizer"):
        OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=7).load(tmp_path / "rows.safetensors")


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
def test_ids_may_be_int32_or_int64(ahead: bool):
    """nn.Embedding takes int32 too, which is what many a tokenizer gives."""
    found = []
    for dtype in (torch.int64, torch.int32):
        embedding = OffloadedEmbedding(ROWS, DIM, optimizer=SGD(learning_rate=0.1), cache_rows=7)
        ids = [torch.tensor([[1, 49], [1, 30]], dtype=dtype), torch.tensor([[2, 30]], dtype=dtype)]
        for batch in embedding.prefetch(ids, ids=lambda batch: batch) if ahead else ids:
            embedding(batch).square().sum().backward()
            embedding.step()
        found.append(embedding.state_dict()["weight"])
    assert torch.equal(*found)


def test_an_id_outside_the_prefetched_batch_is_an_error():
    embedding = OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=7)
    for _ in embedding.prefetch([torch.tensor([1, 5])], ids=lambda ids: ids):
        for wrong in (torch.tensor([2]), torch.tensor([49])):
            with pytest.raises(ValueError, match="forward got ids that were not announced"):
                embedding(wrong)


def test_without_gradients_no_row_changes():
    embedding = OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=7)
    before = copy.deepcopy(embedding.state_dict()["weight"])
    with torch.no_grad():
        assert torch.equal(
            embedding(torch.tensor([[1, 49], [1, 0]])), before[torch.tensor([[1, 49], [1, 0]])]
        )
    embedding.step()
    assert embedding.steps == 0 and torch.equal(embedding.state_dict()["weight"], before)


def accumulate(embedding, pairs) -> None:
    for pair in pairs:
        loss_of(embedding, pair).backward()


def test_gradients_add_up_over_batches_as_in_torch():
    dense = nn.Embedding(ROWS, DIM)
    embedding = OffloadedEmbedding(
        ROWS, DIM, optimizer=SGD(learning_rate=0.1), cache_rows=12, start=dense.weight.detach().clone()
    )
    optimizer = torch.optim.SGD(dense.parameters(), lr=0.1)
    accumulate(dense, batches(2))
    optimizer.step()
    accumulate(embedding, batches(2))
    embedding.step()
    torch.testing.assert_close(embedding.state_dict()["weight"], dense.weight.detach())
    optimizer.zero_grad()
    accumulate(dense, batches(2))
    optimizer.step()
    for pairs in embedding.prefetch([batches(2)], ids=lambda pairs: [ids for pair in pairs for ids in pair]):
        accumulate(embedding, pairs)
    embedding.step()  # also after the loop
    torch.testing.assert_close(embedding.state_dict()["weight"], dense.weight.detach())


def test_a_batch_of_prefetch_does_not_drop_the_gradients_of_the_previous_one():
    embedding = OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=12)
    with pytest.raises(RuntimeError, match="gradients are applied or discarded: call `step` or `zero_grad`"):
        accumulate(embedding, embedding.prefetch(batches(3), ids=lambda pair: pair))
    embedding.zero_grad()
    for pair in embedding.prefetch(batches(3), ids=lambda pair: pair):
        loss_of(embedding, pair).backward()
        embedding.step()
    assert embedding.steps == 3


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
def test_zero_grad_discards_the_gradient_of_a_batch(ahead: bool):
    used, discarded = batches(2)
    embedding, expected = (
        OffloadedEmbedding(ROWS, DIM, optimizer=SGD(learning_rate=0.1), cache_rows=12) for _ in range(2)
    )
    pairs = [discarded, used]
    for pair in embedding.prefetch(pairs, ids=lambda pair: pair) if ahead else pairs:
        loss_of(embedding, pair).backward()
        if pair is discarded:
            embedding.zero_grad()
        embedding.step()
    accumulate(expected, [used])
    expected.step()
    assert embedding.steps == 1
    torch.testing.assert_close(embedding.state_dict(), expected.state_dict())


def test_evaluation_with_gradients_enabled_keeps_no_rows():
    embedding = OffloadedEmbedding(ROWS, DIM, optimizer=SGD(), cache_rows=12)
    gathered, gather = [], embedding.table.gather

    def recorded(ids: torch.Tensor):
        rows, state = gather(ids)
        gathered.append(weakref.ref(rows))
        return rows, state

    embedding.table.gather = recorded
    for pair in batches(5):
        loss_of(embedding, pair)
    assert len(gathered) == 10 and not any(rows() is not None for rows in gathered)


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
def test_a_non_finite_gradient_changes_no_row(ahead: bool):
    embedding = OffloadedEmbedding(ROWS, DIM, optimizer=Adam(), cache_rows=12)
    before = {name: torch.cat(list(part.pieces())) for name, part in embedding.table.sections().items()}
    ids = torch.tensor([3, 40])
    for _ in embedding.prefetch([ids], ids=lambda ids: ids) if ahead else [ids]:
        (embedding(ids) * torch.tensor([[1.0], [torch.inf]])).sum().backward()
        with pytest.raises(ArithmeticError, match=r"for 1 rows, the first is 40; no row was changed\. Lower"):
            embedding.step()
    assert embedding.steps == 0
    for name, part in embedding.table.sections().items():
        assert torch.equal(torch.cat(list(part.pieces())), before[name]), name


def test_add_up_keeps_the_order_of_the_values():
    values, places = torch.randn(500, 4), torch.randint(0, 7, (500,))
    expected = torch.zeros(9, 4)
    for value, place in zip(values, places):
        expected[place] += value
    torch.testing.assert_close(segment_sum(values, places, 9), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(segment_sum(values, places, 9), segment_sum(values, places, 9))
