"""The bag encoder compared with a loop over titles, and its gradient with finite differences."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.training.bag import encode_padded
from benchmarks.training.padded import pad
from storage.arrays import Ragged
from tasks.encoder import Bag
from tasks.encoder.bags import Bagger, Bags, encode_bags, entry_weights
from tasks.text.words import KINDS

TOKENS, DIM = 30, 5
KIND_OF = np.arange(TOKENS, dtype=np.int8) % len(KINDS)
TITLES = [[0, 7, 14, 2, 9, 2], [3], [], [1, 8, 15, 22, 29, 1, 1], [6, 5, 4, 3, 2, 1, 0], [0, 0, 0]]


def table(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(TOKENS, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def bags_of(titles: list[list[int]], keep: np.ndarray | None = None) -> Bags:
    return Bagger(KIND_OF).bags(Ragged.from_rows(titles), keep)


def encode(encoder: Bag, titles: list[list[int]], rows: torch.Tensor | None = None) -> torch.Tensor:
    bags = bags_of(titles)
    return encode_bags(encoder, (table() if rows is None else rows)[bags.ids], bags)


def naive(encoder: Bag, titles: list[list[int]], rows: np.ndarray) -> np.ndarray:
    """Computes vectors title by title and kind by kind, in float64."""
    alphas = [getattr(encoder, kind) for kind in KINDS]
    vectors = []
    for title in titles:
        total = np.zeros(rows.shape[1])
        for kind, alpha in enumerate(alphas):
            own = [rows[token] for token in title if KIND_OF[token] == kind]
            if own:
                total += alpha / len(own) ** encoder.length_power * np.sum(own, axis=0)
        norm = np.linalg.norm(total)
        vectors.append(total / norm if norm else total)
    return np.array(vectors)


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, TOKENS - 1), max_size=12), min_size=1, max_size=8))
def test_any_titles(titles: list[list[int]]):
    found = encode(Bag(), titles)
    np.testing.assert_allclose(found.numpy(), naive(Bag(), titles, table(torch.float64).numpy()), atol=1e-5)
    norms = found.norm(dim=1)
    empty = torch.tensor([not title for title in titles])
    assert torch.equal(norms == 0, empty)
    torch.testing.assert_close(norms[~empty], torch.ones(int((~empty).sum())), atol=1e-6, rtol=0)


def test_vectors_do_not_depend_on_the_batch():
    whole = encode(Bag(), TITLES)
    order = [4, 0, 5, 2, 3, 1]
    torch.testing.assert_close(encode(Bag(), [TITLES[place] for place in order]), whole[order])
    for place, title in enumerate(TITLES):
        torch.testing.assert_close(encode(Bag(), [title])[0], whole[place])


def test_kinds_of_weight_zero_have_no_effect():
    encoder = Bag(word=1, bigram=0, ngram=0, edge=0, shape=0, raw=0, mark=0)
    assert torch.equal(encode(encoder, [[0, 7, 1, 2, 3]]), encode(encoder, [[0, 7]]))
    assert torch.equal(encode(encoder, [[1, 2, 3]]), torch.zeros(1, DIM))


def test_bags_contain_each_row_once():
    bags = bags_of(TITLES)
    assert bags.ids.tolist() == sorted({token for title in TITLES for token in title})
    assert bags.offsets.tolist() == np.cumsum([0] + [len(title) for title in TITLES]).tolist()
    entries = [token for title in TITLES for token in title]
    assert bags.ids[bags.tokens].tolist() == entries
    assert bags.kinds.tolist() == [KIND_OF[token] for token in entries]
    assert bags.entry_titles.tolist() == [number for number, title in enumerate(TITLES) for _ in title]


def test_a_bagger_keeps_nothing_of_the_previous_batch():
    bagger = Bagger(KIND_OF)
    bagger.bags(Ragged.from_rows(TITLES))
    assert bagger.bags(Ragged.from_rows([[4, 9]])).ids.tolist() == [4, 9]


def test_dropped_entries_have_no_effect():
    keep = np.array([token % 2 == 0 for title in TITLES for token in title])
    bags = bags_of(TITLES, keep)
    expected = encode(Bag(), [[token for token in title if token % 2 == 0] for title in TITLES])
    torch.testing.assert_close(encode_bags(Bag(), table()[bags.ids], bags), expected)


@pytest.mark.parametrize("titles", [[[]], [[], [], []], [[], [0, 1], []]])
def test_empty_titles_are_zero_and_never_nan(titles: list[list[int]]):
    bags = bags_of(titles)
    rows = table()[bags.ids].requires_grad_()
    vectors = encode_bags(Bag(), rows, bags)
    (grad,) = torch.autograd.grad((vectors * 3 + vectors**2).sum(), rows)
    assert torch.equal(vectors.norm(dim=1) == 0, torch.tensor([not title for title in titles]))
    assert vectors.isfinite().all() and grad.isfinite().all()
    assert grad.shape == rows.shape


def test_a_title_whose_rows_cancel_is_never_nan():
    bags = bags_of([[0, len(KINDS)]])
    row = torch.ones(1, DIM)
    rows = torch.cat([row, -row]).requires_grad_()
    vectors = encode_bags(Bag(), rows, bags)
    (grad,) = torch.autograd.grad(vectors.sum(), rows)
    assert torch.equal(vectors, torch.zeros(1, DIM)) and grad.isfinite().all()


def test_gradient_of_the_encoder():
    titles = [title for title in TITLES if title]  # at the zero vector there is no gradient to check
    bags = bags_of(titles)
    rows = table(torch.float64)[bags.ids].requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: encode_bags(Bag(), rows, bags), (rows,))


def test_backward_equals_autograd():
    bags = bags_of(TITLES)
    weight = torch.randn(len(TITLES), DIM, generator=torch.Generator().manual_seed(9))
    ours, plain = table()[bags.ids].requires_grad_(), table()[bags.ids].requires_grad_()
    (encode_bags(Bag(), ours, bags) * weight).sum().backward()
    sums = torch.zeros(len(TITLES), DIM).index_add(
        0, bags.entry_titles, plain[bags.tokens] * entry_weights(Bag(), bags)[:, None]
    )
    (torch.nn.functional.normalize(sums) * weight).sum().backward()
    assert ours.grad is not None and plain.grad is not None
    torch.testing.assert_close(ours.grad, plain.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_ragged_and_padded_forms_are_equal_and_padding_counts_for_nothing(power: float):
    encoder, rows = Bag(length_power=power), table()
    padded = pad(Ragged.from_rows(TITLES, dtype=np.int64))
    tokens, kinds = padded.ids.long(), torch.from_numpy(KIND_OF.astype(np.int64))[padded.ids.long()]
    expected = naive(encoder, TITLES, table(torch.float64).numpy())
    np.testing.assert_allclose(encode(encoder, TITLES).numpy(), expected, atol=1e-6)
    found = encode_padded(encoder, rows, tokens, kinds, padded.lengths)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)
    behind = torch.arange(tokens.shape[1]) >= padded.lengths[:, None]
    tokens[behind], kinds[behind] = 29, 3  # whatever stands behind a title's last
    assert torch.equal(encode_padded(encoder, rows, tokens, kinds, padded.lengths), found)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, TOKENS - 1), max_size=12), min_size=1, max_size=8))
def test_readers_compute_the_vectors_of_training(titles: list[list[int]]):
    tokens, rows = Ragged.from_rows(titles, dtype=np.int64), table().numpy()
    dense = np.random.default_rng(0).normal(size=(len(titles), 7)).astype(np.float32)
    dense[::2] = 0
    layer = np.random.default_rng(1).normal(size=(DIM, 7)).astype(np.float32)
    bags = Bagger(KIND_OF).bags(tokens, features=dense)
    for encoder in (Bag(), Bag(length_power=0.0, sentence=1.3)):
        expected = encode_bags(encoder, table()[bags.ids], bags, torch.from_numpy(layer)).numpy()
        vectors = encoder.encode(rows, tokens, KIND_OF[tokens.values], dense, layer)
        np.testing.assert_allclose(vectors, expected, atol=2e-6)
