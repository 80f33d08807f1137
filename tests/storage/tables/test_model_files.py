"""A model in a file: rows with their state in pieces, and all other parameters and buffers."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from storage.tables import OffloadedEmbedding, OffloadedEmbeddingBag, Section, load_model, save_model
from tasks.optimizers import SGD, Adam


class Model(nn.Module):
    def __init__(self, cache_rows: int, words: int = 40) -> None:
        super().__init__()
        torch.manual_seed(cache_rows)
        options = {"cache_rows": cache_rows, "seed": cache_rows}
        self.users = OffloadedEmbedding(20, 4, optimizer=Adam(), **options)
        self.words = OffloadedEmbeddingBag(words, 4, optimizer=SGD(), **options)
        self.rest = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2).to(torch.bfloat16))

    def forward(self, users: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        vectors = self.rest[0](self.users(users) + self.words(words))
        return self.rest[1](vectors.to(torch.bfloat16)).float().square().sum()

    def train_on(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        optimizer = torch.optim.SGD(self.rest.parameters(), lr=0.1)
        for _ in range(10):
            self(
                torch.randint(0, 20, (6,), generator=generator),
                torch.randint(0, 40, (6, 3), generator=generator),
            ).backward()
            optimizer.step()
            optimizer.zero_grad()
            self.users.step(0.01)
            self.words.step(0.01)


def test_a_saved_model_continues_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model, other, file = Model(7), Model(5), tmp_path / "model.safetensors"
    model.train_on(1)
    with monkeypatch.context() as patch:  # no tensor of a complete table is made
        patch.delattr(Section, "tensor")
        save_model(model, file)
        load_model(other, file)
    assert other.users.steps == other.words.steps == 10
    assert {"users.rows", "users.state.first", "words.rows", "rest.0.num_batches_tracked"} < set(
        load_file(file)
    )
    for one in (model, other):
        one.train_on(2)
    torch.testing.assert_close(dict(other.state_dict()), dict(model.state_dict()), rtol=0, atol=0)


def test_another_model_is_refused(tmp_path: Path):
    file = tmp_path / "model.safetensors"
    save_model(Model(7), file)
    with pytest.raises(ValueError, match=r"the file contains {.words.rows.: \(40, 4\)}, this embedding has"):
        load_model(Model(7, words=41), file)
    larger = Model(7)
    larger.extra = nn.Linear(1, 1)
    with pytest.raises(
        RuntimeError, match=r"lacks \['extra.bias', 'extra.weight'\], and the model lacks \[\]"
    ):
        load_model(larger, file)
