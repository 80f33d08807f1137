"""The layer on sentence vectors compared with its formula."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from storage.arrays import Ragged
from tasks.encoder import Bag
from tasks.encoder.bags import Bagger, Bags, encode_bags
from tasks.encoder.meaning import Meaning
from tasks.text.words import CONTEXT, KINDS

TOKENS, DIM, FEATURES = 30, 5, 7
KIND_OF = np.arange(TOKENS, dtype=np.int8) % len(KINDS)
OF_TITLE = [token for token in range(TOKENS) if KIND_OF[token] < CONTEXT]
AIRED = [token for token in range(TOKENS) if KIND_OF[token] >= CONTEXT]
TITLES = [OF_TITLE[:4], [], OF_TITLE[5:7] + AIRED[:3], OF_TITLE[2:6], [], AIRED[3:5]]
KNOWN = [True, True, True, False, False, True]  # has x


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def dense() -> np.ndarray:
    own = 2 * random(len(TITLES), FEATURES, seed=1).numpy()
    own[~np.array(KNOWN)] = 0
    return own


def bags(x: np.ndarray | None) -> Bags:
    return Bagger(KIND_OF).bags(Ragged.from_rows(TITLES), features=x)


def test_results_equal_the_formula():
    encoder, layer, x = Bag(sentence=1.7, sentence_context=0.6), random(DIM, FEATURES, seed=2), dense()
    rows = random(TOKENS, DIM, seed=0)
    own = bags(x)
    alone = encode_bags(encoder, rows[own.ids], bags(None)).numpy()
    found = encode_bags(encoder, rows[own.ids], own, layer).numpy()
    for title, (bag, vector) in enumerate(zip(alone, found, strict=True)):
        image = layer.numpy() @ x[title]
        beta = 0.6 if set(TITLES[title]) & set(AIRED) else 1.7
        length = np.linalg.norm(image)
        total = bag + (beta * np.linalg.norm(x[title]) * image / length if length else 0)
        norm = np.linalg.norm(total)
        np.testing.assert_allclose(vector, total / norm if norm else total, atol=1e-6)
    assert found.any(axis=1).tolist() == [True, True, True, True, False, True]


def test_gradient():
    own, layer = bags(dense()), random(DIM, FEATURES, seed=2).requires_grad_()
    rows = random(len(own.ids), DIM, seed=0).requires_grad_()
    known = torch.tensor([0, 1, 2, 3, 5])  # title 4 has neither tokens nor features
    assert torch.autograd.gradcheck(
        lambda rows, layer: encode_bags(Bag(), rows, own, layer)[known], (rows, layer), atol=1e-4
    )


@pytest.mark.parametrize("of_no_columns", [True, False])
def test_without_dense_inputs_the_bag_alone_counts_to_the_bit(of_no_columns: bool):
    rows = random(TOKENS, DIM, seed=0)
    x = np.zeros((len(TITLES), 0 if of_no_columns else FEATURES))
    own = bags(x)
    found = encode_bags(Bag(), rows[own.ids], own, random(DIM, x.shape[1], seed=2))
    alone = encode_bags(Bag(), rows[own.ids], bags(None))
    assert torch.equal(found, alone) if of_no_columns else torch.allclose(found, alone, atol=1e-12)


def test_descriptions_are_read_in_linear_time():
    class Description(str):
        checks = 0

        def __bool__(self) -> bool:
            Description.checks += 1
            return len(self) > 0

    class Encoder:
        def encode(self, texts: list[str]) -> np.ndarray:
            return np.ones((len(texts), 4), dtype=np.float32)

    meaning = Meaning({}, np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32))
    meaning.__dict__["encoder"] = Encoder()
    descriptions = [Description("")] * 49 + [Description("About whales")]
    assert meaning.sentence_features(Bag(), ["Title"] * 50, descriptions).shape == (50, 4)
    assert Description.checks == 50


def test_the_weight_of_descriptions():
    titles, descriptions = np.eye(3, 4, dtype=np.float16), np.eye(3, 4, 1, dtype=np.float16)
    descriptions[2] = 0  # this title has none
    x = replace(Bag(), description=0.5).sentence_features(titles, descriptions)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, [[1, 0.5, 0, 0], [0, 1, 0.5, 0], [0, 0, 1, 0]])
