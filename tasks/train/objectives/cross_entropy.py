"""Computes the loss of the label objective, and its gradients, with fewer operations than autograd."""

import torch
from torch import Tensor

from tasks.train.objectives.label import LabelTargets


class CrossEntropy(torch.autograd.Function):
    """Autograd function for the mean loss of the label objective (LabelMode)."""

    # The forward pass also computes the gradients, because it needs p = softmax(v·Lᵀ/τ) anyway. For n titles
    # with vectors v and category shares t, and for unit vectors L of the categories, dloss/dv is
    # (p − t)·L / n. dloss/dL is (p − t)ᵀ·v / n without its component along L, divided by the length of L.
    @staticmethod
    def forward(ctx, vectors: Tensor, labels: Tensor, targets: LabelTargets, temperatures: Tensor) -> Tensor:
        """Returns the mean loss of a batch.

        Args:
            ctx: Context of autograd, which stores the gradients.
            vectors: Unit vectors of the titles, (titles, dim).
            labels: Vectors of the categories, (labels, dim), of any norm.
            targets: Categories of the titles.
            temperatures: Temperature τ of each title, (titles,).
        """
        lengths = torch.linalg.vector_norm(labels, dim=1, keepdim=True).clamp_(min=1e-12)
        units, shares, count = labels / lengths, targets.shares.to(vectors.dtype), len(vectors)
        cosines = (vectors @ units.T).to(vectors.dtype)
        log_p = torch.log_softmax(cosines.div_(temperatures.unsqueeze(1)), 1)  # (titles, labels)
        positions = (
            targets.titles * len(labels) + targets.labels
        )  # of the categories of each title in log_p.view(-1)
        weights = shares * temperatures.index_select(0, targets.titles)
        loss = -torch.dot(log_p.view(-1).index_select(0, positions), weights) / count
        if any(ctx.needs_input_grad):
            cosine_grads = log_p.exp_().view(-1).index_add_(0, positions, shares, alpha=-1.0).view_as(log_p)
            cosine_grads.div_(count)  # (p − t) / n
            label_grads = (cosine_grads.T @ vectors).to(vectors.dtype)  # (labels, dim)
            projections = torch.linalg.vecdot(label_grads, units).unsqueeze(1)
            label_grads.addcmul_(units, projections, value=-1.0).div_(lengths)
            ctx.save_for_backward((cosine_grads @ units).to(vectors.dtype), label_grads)
        return loss

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Returns the gradients of the loss with respect to ``vectors`` and ``labels``."""
        vector_grads, label_grads = ctx.saved_tensors
        return vector_grads * grads[0], label_grads * grads[0], None, None
