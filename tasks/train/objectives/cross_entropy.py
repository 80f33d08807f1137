"""Computes the loss of the label objective and its gradients."""

import torch
from torch import Tensor

from tasks.train.objectives.label import LabelTargets


class CrossEntropy(torch.autograd.Function):
    """Autograd function: mean loss of the label objective (LabelMode), with its gradients."""

    # The forward pass also computes the gradients, because it has p = softmax(v·Lᵀ/τ). For n titles and unit
    # vectors L, dloss/dv = (p − t)·L / n, and dloss/dL is (p − t)ᵀ·v / n without its component along L,
    # divided by the length of L.
    @staticmethod
    def forward(ctx, vectors: Tensor, labels: Tensor, targets: LabelTargets, temperatures: Tensor) -> Tensor:
        """Returns the mean loss of a batch; ``temperatures`` has one per title."""
        lengths = torch.linalg.vector_norm(labels, dim=1, keepdim=True).clamp_(min=1e-12)
        units, shares, count = labels / lengths, targets.shares.to(vectors.dtype), len(vectors)
        cosines = (vectors @ units.T).to(vectors.dtype)
        log_p = torch.log_softmax(cosines.div_(temperatures.unsqueeze(1)), 1)  # (titles, labels)
        positions = targets.titles * len(labels) + targets.labels  # flat positions of the titles' categories
        weights = shares * temperatures.index_select(0, targets.titles)
        loss = -torch.dot(log_p.view(-1).index_select(0, positions), weights) / count
        if any(ctx.needs_input_grad):
            excess = log_p.exp_().view(-1).index_add_(0, positions, shares, alpha=-1.0).view_as(log_p)
            excess.div_(count)  # (p − t) / n
            label_grads = (excess.T @ vectors).to(vectors.dtype)  # (labels, dim)
            projections = torch.linalg.vecdot(label_grads, units).unsqueeze(1)
            label_grads.addcmul_(units, projections, value=-1.0).div_(lengths)
            ctx.save_for_backward((excess @ units).to(vectors.dtype), label_grads)
        return loss

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Returns the gradients of vectors and labels."""
        vector_grads, label_grads = ctx.saved_tensors
        return vector_grads * grads[0], label_grads * grads[0], None, None
