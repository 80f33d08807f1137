"""Clipping the gradient of a step, against torch's own."""

import pytest
import torch

from tasks.optimizers.clipping import ClipByNorm, ClipByValue, NoClipping


def gradients() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(*shape, generator=generator) for shape in ((5, 3), (4, 1), (2, 2, 2))]


@pytest.mark.parametrize("limit", [0.5, 2.0, 100.0])
def test_by_norm_is_torch_over_all_parts_together(limit: float):
    ours, theirs = gradients(), [torch.nn.Parameter(torch.zeros_like(grad)) for grad in gradients()]
    for parameter, grad in zip(theirs, gradients(), strict=True):
        parameter.grad = grad
    torch.nn.utils.clip_grad_norm_(theirs, limit)
    ClipByNorm(max_norm=limit).clip_(ours)
    for grad, parameter in zip(ours, theirs, strict=True):
        torch.testing.assert_close(grad, parameter.grad, rtol=2e-6, atol=0)  # torch adds 1e-6 to the norm
    before, after = (
        torch.cat([grad.flatten() for grad in some]).norm().item() for some in (gradients(), ours)
    )
    assert 2 < before < 100 and after == pytest.approx(min(limit, before))


def test_by_norm_leaves_a_short_gradient_and_zero_to_the_bit():
    short, zero = [torch.tensor([0.3, -0.4])], [torch.zeros(3)]
    ClipByNorm(max_norm=0.5).clip_(short)
    ClipByNorm(max_norm=0.5).clip_(zero)
    assert torch.equal(short[0], torch.tensor([0.3, -0.4])) and torch.equal(zero[0], torch.zeros(3))


def test_clipping_by_value_and_no_clipping():
    grad = torch.tensor([-3.0, -0.1, 0.0, 0.2, 7.0])
    NoClipping().clip_([grad])
    assert grad.tolist() == pytest.approx([-3.0, -0.1, 0.0, 0.2, 7.0])
    ClipByValue(clip_value=0.2).clip_([grad])
    assert grad.tolist() == pytest.approx([-0.2, -0.1, 0.0, 0.2, 0.2])
