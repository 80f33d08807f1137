"""Dense parameters of a module: tables of which every step touches every row, so that the rules of rows serve them too.

    optimizer = Optimizer(["rows", *dict(module.named_parameters())], rule=RowwiseAdagrad(), groups=[Group(pattern="gru.*", rule=Adam())])
    table = Resident(rows, optimizer.movers["rows"].initial_state(rows))
    dense = Dense(module, optimizer)
    …
    loss.backward()
    optimizer.move_({"rows": Part(rows.detach(), rows.grad, state), **dense.parts()}, factor, step)

A row of a parameter is what its first axis counts: an output of a linear layer, one number of a bias.
"""

from __future__ import annotations

from torch import Tensor, nn

from tasks.train.optimizer import Optimizer
from tasks.train.parts import Part


class Dense:
    """Parameters of a module with their rules' state.

    Args:
        module: On the device that trains; its parameters move in place.
        optimizer: Knows their names.
    """

    def __init__(self, module: nn.Module, optimizer: Optimizer) -> None:
        self._parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        self._state = {name: optimizer.movers[name].initial_state(_rows(parameter.detach())) for name, parameter in self._parameters.items()}

    def parts(self) -> dict[str, Part]:
        """What the gradients of the last backward pass ask to move, by name; the gradients are taken off the module."""
        parts = {}
        for name, parameter in self._parameters.items():
            if parameter.grad is not None:
                parts[name] = Part(_rows(parameter.detach()), _rows(parameter.grad), self._state[name])
                parameter.grad = None
        return parts

    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint keeps, by name: parameters and their state; restored by ``copy_``."""
        found = {name: parameter.detach() for name, parameter in self._parameters.items()}
        return found | {f"{name}.state.{key}": tensor for name, state in self._state.items() for key, tensor in state.items()}


def _rows(tensor: Tensor) -> Tensor:
    """A view with two axes: (first axis, all others)."""
    return tensor.reshape(1, 1) if tensor.ndim == 0 else tensor.view(len(tensor), -1)
