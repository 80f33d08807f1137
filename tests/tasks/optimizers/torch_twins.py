"""torch.optim as the reference of our optimizers."""

import torch

from tasks.optimizers import (
    ASGD,
    SGD,
    SMORMS3,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    AMSGrad,
    Momentum,
    NAdam,
    Nesterov,
    Optimizer,
    RMSprop,
    RowwiseAdagrad,
    Rprop,
)


def torch_optimizer(optimizer: Optimizer, parameter: torch.Tensor) -> torch.optim.Optimizer:
    """Returns the optimizer of torch that computes the same, tensor by tensor."""
    optim, common = torch.optim, {"params": [parameter], "lr": optimizer.learning_rate, "foreach": False}
    match optimizer:
        case SGD():
            return optim.SGD(**common)
        case Momentum():
            return optim.SGD(**common, momentum=optimizer.momentum, dampening=optimizer.dampening)
        case Nesterov():
            return optim.SGD(**common, momentum=optimizer.momentum, nesterov=True)
        case Adagrad():
            return optim.Adagrad(
                **common, eps=optimizer.epsilon, initial_accumulator_value=optimizer.initial_accumulator_value
            )
        case Adadelta():
            return optim.Adadelta(**common, rho=optimizer.rho, eps=optimizer.epsilon)
        case RMSprop():
            return optim.RMSprop(
                **common,
                alpha=optimizer.alpha,
                eps=optimizer.epsilon,
                momentum=optimizer.momentum,
            )
        case Rprop():
            return optim.Rprop(
                **common,
                etas=(optimizer.etaminus, optimizer.etaplus),
                step_sizes=(optimizer.step_size_min, optimizer.step_size_max),
            )
        case ASGD():
            return optim.ASGD(**common, lambd=optimizer.lambd, alpha=optimizer.alpha, t0=optimizer.t0)
        case Adam():
            return optim.Adam(**common, betas=(optimizer.beta1, optimizer.beta2), eps=optimizer.epsilon)
        case AMSGrad():
            return optim.Adam(
                **common, betas=(optimizer.beta1, optimizer.beta2), eps=optimizer.epsilon, amsgrad=True
            )
        case AdamW():
            return optim.AdamW(
                **common,
                betas=(optimizer.beta1, optimizer.beta2),
                eps=optimizer.epsilon,
                weight_decay=optimizer.weight_decay,
            )
        case Adamax():
            return optim.Adamax(**common, betas=(optimizer.beta1, optimizer.beta2), eps=optimizer.epsilon)
        case NAdam():
            return optim.NAdam(
                **common,
                betas=(optimizer.beta1, optimizer.beta2),
                eps=optimizer.epsilon,
                momentum_decay=optimizer.momentum_decay,
            )
    raise AssertionError(f"{optimizer.name} has no reference in torch")


# torch has no such optimizer: the float64 loop, and golden values, hold them alone
WITHOUT_TORCH = {RowwiseAdagrad, SMORMS3}
