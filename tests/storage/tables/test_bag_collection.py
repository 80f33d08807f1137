"""A collection of tables under one cache, compared with separate tables and with nn.EmbeddingBag."""

from pathlib import Path

import pytest
import torch
from torch import nn

from storage.tables import (
    EmbeddingBagConfig,
    OffloadedEmbeddingBag,
    OffloadedEmbeddingBagCollection,
    load_model,
    save_model,
)
from tasks.optimizers import SGD, Adam, RowwiseAdagrad

DIM = 4
TABLES = (
    EmbeddingBagConfig(name="items", num_embeddings=40, embedding_dim=DIM, feature_names=["seen", "liked"]),
    EmbeddingBagConfig(
        name="users", num_embeddings=7, embedding_dim=DIM, feature_names=["user"], pooling="mean"
    ),
    EmbeddingBagConfig(name="words", num_embeddings=40, embedding_dim=DIM, feature_names=["words"]),
)


def collection(cache_rows: int = 12, **options) -> OffloadedEmbeddingBagCollection:
    options = {"optimizer": Adam(learning_rate=0.05), "seed": 3} | options
    return OffloadedEmbeddingBagCollection(TABLES, cache_rows=cache_rows, **options)


def feature_batches(number: int = 25) -> list[dict]:
    generator = torch.Generator().manual_seed(1)

    def draw(rows: int, *shape: int) -> torch.Tensor:
        return (torch.rand(shape, generator=generator).square() * rows).long()

    return [
        {
            "words": (draw(40, 9), torch.tensor([0, 0, 4])),
            "user": draw(7, 3, 2),
            "liked": draw(40, 3, 1),
            "seen": (draw(40, 11), torch.tensor([0, 5, 6])),
        }
        for _ in range(number)
    ]


def loss_of(vectors: dict[str, torch.Tensor]) -> torch.Tensor:
    liked = vectors["liked"] + 0.5 * vectors["user"]
    return (vectors["seen"] * liked).sum() + (vectors["words"] * vectors["user"] - liked).square().sum()


@pytest.mark.parametrize("cache_rows", [87, 12, 1])
@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
@pytest.mark.parametrize("optimizer", [Adam(), RowwiseAdagrad()], ids=lambda optimizer: optimizer.name)
def test_rows_are_those_of_separate_tables_bit_for_bit(optimizer, ahead: bool, cache_rows: int):
    ours = collection(cache_rows, optimizer=optimizer)
    separate = {
        table.name: OffloadedEmbeddingBag(
            table.num_embeddings,
            DIM,
            optimizer=optimizer,
            mode=table.pooling,
            cache_rows=table.num_embeddings,  # all rows are resident
            start=ours.state_dict()[f"embedding_bags.{table.name}.weight"],
        )
        for table in TABLES
    }
    batches = feature_batches()
    for features in ours.prefetch(batches, ids=lambda features: features) if ahead else batches:
        vectors = ours(features)
        assert list(vectors) == list(features)
        # a call for each table, with the bags of all of its features
        liked, (seen, offsets) = features["liked"].flatten(), features["seen"]
        both = torch.cat([liked, seen]), torch.cat([torch.arange(3), offsets + 3])
        expected = {
            "words": separate["words"](*features["words"]),
            "user": separate["users"](features["user"]),
            **dict(zip(("liked", "seen"), separate["items"](*both).split(3))),
        }
        for name in vectors:
            assert torch.equal(vectors[name], expected[name]), (name, ours.steps)
        loss_of(vectors).backward()
        loss_of(expected).backward()
        for embedding in (ours, *separate.values()):
            embedding.step(0.05)
    for name, embedding in separate.items():
        rows = ours.state_dict()[f"embedding_bags.{name}.weight"]
        assert torch.equal(rows, embedding.state_dict()["weight"]), name


def test_vectors_are_those_of_torch_with_weights():
    ours, (features, *_) = collection(), feature_batches()
    weights = {"words": torch.rand(9, requires_grad=True), "liked": torch.rand(3, 1)}
    vectors = ours(features, weights)
    for table in TABLES:
        rows = ours.state_dict()[f"embedding_bags.{table.name}.weight"]
        dense = nn.EmbeddingBag(*rows.shape, mode=table.pooling, _weight=rows)
        for name in table.feature_names:
            bags = features[name] if isinstance(features[name], tuple) else (features[name],)
            expected = dense(*bags, per_sample_weights=weights.get(name))
            torch.testing.assert_close(vectors[name], expected)
    vectors["words"].sum().backward()
    assert weights["words"].grad is not None and weights["words"].grad.all()
    with pytest.raises(ValueError, match="per_sample_weights has the feature 'user'"):
        ours(features, {"user": torch.rand(3, 2)})


def test_small_ids_of_every_table_are_always_cached():
    ours = collection(cache_rows=30)
    assert [ours.row_numbers(table, torch.tensor([0, 2])).tolist() for table in range(3)] == [
        [0, 6],
        [1, 7],
        [2, 8],
    ]
    numbers = [ours.row_numbers(n, torch.arange(table.num_embeddings)) for n, table in enumerate(TABLES)]
    assert torch.cat(numbers).sort().values.tolist() == list(range(87))
    assert numbers[0][7:].tolist() == list(range(21, 87, 2))  # the table of 7 rows has ended


@pytest.mark.parametrize("whole_model", [True, False], ids=["save_model", "save"])
def test_a_saved_collection_continues_with_the_same_bits(tmp_path: Path, whole_model: bool):
    one, other, file = collection(), collection(cache_rows=5, seed=8), tmp_path / "tables"
    batches = feature_batches()

    def train(embedding: OffloadedEmbeddingBagCollection, part: list[dict]) -> None:
        for features in embedding.prefetch(part, ids=lambda features: features):
            loss_of(embedding(features)).backward()
            embedding.step()

    train(one, batches[:10])
    if whole_model:
        save_model(nn.ModuleList([one]), file)
        load_model(nn.ModuleList([other]), file)
    else:
        one.save(file)
        other.load(file)
    for embedding in (one, other):
        train(embedding, batches[10:])
    torch.testing.assert_close(dict(other.state_dict()), dict(one.state_dict()), rtol=0, atol=0)
    swapped = OffloadedEmbeddingBagCollection(TABLES[::-1], optimizer=Adam(), cache_rows=5)
    one.save(file)
    with pytest.raises(ValueError, match=r"the file has rows of \[\['items', 40\].*this embedding has"):
        swapped.load(file)
    swapped.load_state_dict(one.state_dict())  # by the names of the tables
    torch.testing.assert_close(dict(swapped.state_dict()), dict(one.state_dict()), rtol=0, atol=0)
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"weight"'):
        swapped.load_state_dict({**one.state_dict(), "weight": torch.zeros(1)})
    with pytest.raises(RuntimeError, match=r"Missing key.*embedding_bags\.users\.weight"):
        swapped.load_state_dict({k: v for k, v in one.state_dict().items() if "users" not in k})


def test_wrong_tables_and_features_are_errors():
    with pytest.raises(ValueError, match=r"all tables need the same embedding_dim, got \[4, 8\]"):
        OffloadedEmbeddingBagCollection(
            [
                TABLES[0],
                EmbeddingBagConfig(name="x", num_embeddings=3, embedding_dim=8, feature_names=["x"]),
            ],
            optimizer=SGD(),
        )
    with pytest.raises(ValueError, match="a table occurs twice"):
        OffloadedEmbeddingBagCollection([TABLES[0], TABLES[0]], optimizer=SGD())
    with pytest.raises(ValueError, match=r"the features \['tags'\]; valid features: seen, liked"):
        collection()({"tags": torch.zeros(1, 1, dtype=torch.int64)})
    with pytest.raises(IndexError, match="id 7 is not in table 'users', which has 7 rows"):
        collection()({"user": torch.tensor([[7]])})
