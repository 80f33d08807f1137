"""Title vectors and scores: one title at a time, a padded block, and ragged bags.

The original implementation takes 14,863 ms with the loop and 8,294 ms with batches, on another machine. Here
the three variants process the same titles (512 titles of about 60 tokens in four kinds, 128 dimensions, one
thread), in turn, with medians in CPU milliseconds: a loop over titles, one padded block, and the ragged bags
that training uses; the last two also with the gradient.

Scores of every title with every category are computed by elementwise product and sum over a broadcast block,
and by one matrix product.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.claims import Claim, run
from benchmarks.timing import in_turn
from benchmarks.training.padded import pad
from storage.arrays import Ragged
from tasks.encoder import Bag
from tasks.encoder.bags import Bagger, encode_bags

TITLES, TOKENS, DIM, LABELS = 512, 40_000, 128, 152


def encode_padded(encoder: Bag, rows: Tensor, tokens: Tensor, kinds: Tensor, lengths: Tensor) -> Tensor:
    """Encodes titles from padded token ids and kinds; entries from ``lengths`` on are ignored."""
    alpha = torch.from_numpy(encoder.kind_weights()).to(rows)
    mask = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)  # (titles, longest)
    counts = torch.zeros(len(tokens), len(alpha), device=rows.device).scatter_add_(1, kinds, mask.float())
    values = alpha[kinds] * counts.gather(1, kinds).clamp(min=1).pow(-encoder.length_power) * mask
    return F.normalize(torch.bmm(values.to(rows).unsqueeze(1), rows[tokens]).squeeze(1), dim=1)


def measure_bags(quick: bool) -> Sequence[Claim]:
    """Measures all claims of this file."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 100, TITLES)
    tokens = Ragged(np.concatenate([[0], np.cumsum(lengths)]), rng.zipf(1.2, lengths.sum()) % TOKENS)
    kinds = (np.arange(TOKENS) % 4).astype(np.int8)
    rows = torch.randn(TOKENS, DIM, generator=torch.Generator().manual_seed(0)) * 0.1
    encoder, bags, padded_tokens = Bag(), Bagger(kinds).bags(tokens), pad(tokens)
    gathered_rows, ids = rows[bags.ids], padded_tokens.ids.long()
    kinds_padded = torch.from_numpy(kinds.astype(np.int64))[ids]
    forms: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
        "a loop over titles": (lambda table: loop(encoder, table, tokens, kinds), rows),
        "one padded block": (
            lambda table: encode_padded(encoder, table, ids, kinds_padded, padded_tokens.lengths),
            rows,
        ),
        "ragged bags": (lambda table: encode_bags(encoder, table, bags), gathered_rows),
    }
    expected_vectors = forms["ragged bags"][0](gathered_rows)
    for name, (form, table) in forms.items():
        torch.testing.assert_close(
            form(table), expected_vectors, atol=1e-5, rtol=0, msg=f"{name} gives other vectors"
        )
    repeats = 3 if quick else 15
    forward = milliseconds({name: partial(form, table) for name, (form, table) in forms.items()}, repeats)
    batched = "one padded block", "ragged bags"
    both = milliseconds({name: partial(with_gradient, *forms[name]) for name in batched}, repeats)
    labels = F.normalize(torch.randn(LABELS, DIM, generator=torch.Generator().manual_seed(1)), dim=1)
    products: dict[str, Callable[[], object]] = {
        "matrix product": lambda: expected_vectors @ labels.T,
        "elementwise sum": lambda: (expected_vectors.unsqueeze(1) * labels).sum(2),
    }
    scores = milliseconds(products, repeats)

    def beside(name: str, values: dict[str, float], ours: str, rival: str, aim: float) -> Claim:
        return Claim(f"{name}, CPU ms", values[ours], rival, values[rival], aim=aim, better="less")

    loop_name, gradient = "a loop over titles", "vectors and gradient, ragged bags"
    return [  # ratio of the original implementation: .56 (8,294 / 14,863 ms)
        *(
            beside(f"vectors of 512 titles, {name}", forward, name, loop_name, aim)
            for name, aim in zip(batched, (0.56, 0.05), strict=True)
        ),
        beside(gradient, both, "ragged bags", "one padded block", 1),
        beside("scores, 512 titles × 152 labels", scores, "matrix product", "elementwise sum", 0.5),
    ]


def milliseconds(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Returns the median CPU milliseconds of calls that alternate."""
    return {name: 1000 * seconds for name, seconds in in_turn(calls, repeats).items()}


def loop(encoder: Bag, rows: Tensor, tokens: Ragged, kinds: np.ndarray) -> Tensor:
    """Encodes titles one after the other, and within a title one kind of tokens after the other."""
    alpha = encoder.kind_weights().tolist()
    vectors = []
    for title in range(len(tokens)):
        tokens_of_title = tokens[title]
        total = torch.zeros(rows.shape[1])
        for kind in np.unique(kinds[tokens_of_title]):
            of_kind = torch.from_numpy(tokens_of_title[kinds[tokens_of_title] == kind])
            total = total + rows[of_kind].sum(0) * (alpha[kind] / len(of_kind) ** encoder.length_power)
        vectors.append(F.normalize(total, dim=0))
    return torch.stack(vectors)


def with_gradient(form: Callable[[Tensor], Tensor], table: Tensor) -> Tensor:
    """Returns the vectors, and the gradient of their sum with respect to the table."""
    leaf = table.detach().requires_grad_()
    (grad,) = torch.autograd.grad(form(leaf)[:, 0].sum(), leaf)
    return grad


if __name__ == "__main__":
    sys.exit(run(measure_bags, __doc__ or ""))
