"""Tensors that say ``cuda:0`` and hold CPU memory; their operations are queued on simulated streams."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.device.streams import GPU, Allocation, Stream

DEVICE = torch.device("cuda", 0)
WAITS = {
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
}  # the result's shape or value is needed
aten = torch.ops.aten


class DeviceTensor(Tensor):
    """A tensor on the simulated device: ``memory``, its CPU tensor, and the allocation it is part of."""

    memory: Tensor
    allocation: Allocation

    @staticmethod
    def __new__(cls, memory: Tensor, allocation: Allocation | None = None) -> "DeviceTensor":
        made = Tensor._make_wrapper_subclass(  # pyright: ignore[reportAttributeAccessIssue]
            cls,
            memory.size(),
            strides=memory.stride(),
            storage_offset=memory.storage_offset(),
            dtype=memory.dtype,
            device=DEVICE,
        )
        made.memory, made.allocation = memory, allocation or Allocation(memory)
        return made

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        return self.memory.data_ptr()

    def record_stream(self, s: Stream) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Keeps the memory allocated until the stream has run the items that are queued when it is freed."""
        self.allocation.used_by.add(s)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})


class Simulated(TorchDispatchMode):
    """Runs operations on simulated tensors, and operations that name the device without such an argument."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})


def dispatch(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Runs an operation on the simulated device."""
    names_device = kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda"
    tensors = list(_tensors((*args, *kwargs.values())))
    on_device = any(isinstance(tensor, DeviceTensor) for tensor in tensors)
    if not on_device and not names_device:
        return _on_cpu(func, args, kwargs)
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    if composite and torch.is_inference_mode_enabled():  # elsewhere autograd has taken it apart before
        with Simulated():
            return func.decompose(*args, **kwargs)
    if func is aten._to_copy.default and not (isinstance(args[0], DeviceTensor) and _stays(kwargs)):
        return _move(args[0], kwargs)
    if func is aten.copy_.default and not (
        isinstance(args[0], DeviceTensor) and isinstance(args[1], DeviceTensor)
    ):
        return _copy(args[0], args[1], bool(kwargs.get("non_blocking") or args[2:3] == (True,)))
    if func is aten.is_pinned.default:
        return False
    returned, memory = func._schema.returns, (_each(_memory, args), _each(_memory, kwargs))
    if not func._schema.is_mutable and returned and returned[0].alias_info is not None:  # a view
        return _each(lambda part: DeviceTensor(part, args[0].allocation), func(*memory[0], **memory[1]))
    if any(not isinstance(tensor, DeviceTensor) and tensor.dim() for tensor in tensors):
        raise RuntimeError(f"{func}: all tensors must be on the same device, found cuda:0 and cpu")
    if func._schema.is_mutable:
        GPU.launch(lambda: func(*memory[0], **memory[1]))
        return kwargs["out"] if "out" in kwargs else args[0] if returned else None
    by_ids = func is aten.index.Tensor and all(one.dtype != torch.bool for one in _tensors(args[1]))
    if (WAITS & set(func.tags) and not by_ids) or func in (
        aten.equal.default,
        aten._local_scalar_dense.default,
    ):
        return _at_once(func, memory)
    try:
        shapes = _shapes(func, args, kwargs)
    except (NotImplementedError, RuntimeError):  # no shape is known before its values are
        return _at_once(func, memory)
    made = _each(lambda like: DeviceTensor(_uninitialized(like)), shapes)
    targets = [_memory(tensor) for tensor in _tensors(made if isinstance(made, tuple | list) else (made,))]

    def work() -> None:
        values = func(*memory[0], **memory[1])
        for target, value in zip(
            targets, _tensors(values if isinstance(values, tuple) else (values,)), strict=True
        ):
            if target.shape == value.shape:
                target.copy_(value)
            else:  # what only a backward pass reads, made otherwise on a GPU
                target.set_(value)

    if not func.name().startswith("aten::empty"):
        GPU.launch(work)
    return made


_KNOWN: dict[Any, Any] = {}  # shapes of results by operation and arguments


def _shapes(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Computes the shapes of the results on the meta device."""

    def key(value: Any) -> Any:
        if isinstance(value, Tensor):
            return tuple(value.shape), value.stride(), value.dtype
        return tuple(map(key, value)) if isinstance(value, tuple | list) else (type(value), value)

    about = func, key(args), tuple((name, key(value)) for name, value in kwargs.items())
    if about not in _KNOWN:
        _KNOWN[about] = func(*_each(_shape, args), **_each(_shape, kwargs))
    return _KNOWN[about]


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(value)


def _each(convert: Callable[[Any], Any], value: Any) -> Any:
    """Converts the tensors and devices in nested arguments."""
    if isinstance(value, Tensor | torch.device):
        return convert(value)
    if isinstance(value, dict):
        return {name: _each(convert, part) for name, part in value.items()}
    return type(value)(_each(convert, part) for part in value) if type(value) in (tuple, list) else value


def _on_cpu(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Allocates host memory, pinned if requested."""
    if func in (aten.is_pinned.default, aten._pin_memory.default):
        if func is aten.is_pinned.default or GPU.holds(args[0].data_ptr()):
            return GPU.holds(args[0].data_ptr()) if func is aten.is_pinned.default else args[0]
        GPU.pinned.append(args[0].clone())
        return GPU.pinned[-1]
    if not kwargs.get("pin_memory"):
        return func(*args, **kwargs)
    made = func(*args, **{**kwargs, "pin_memory": False})
    GPU.pinned.append(made)
    return made


def _at_once(func: Any, memory: tuple[Any, Any]) -> Any:
    """Runs an operation for which the host waits."""
    GPU.synchronize(GPU.current)
    return _each(_as_new, func(*memory[0], **memory[1]))


def _as_new(value: Tensor) -> Tensor:
    made = DeviceTensor(_uninitialized(value))
    made.memory.copy_(value)
    return made


def _move(source: Tensor, kwargs: Mapping[str, Any]) -> Tensor:
    """Implements ``to`` another device."""
    dtype, blocking = kwargs.get("dtype") or source.dtype, not kwargs.get("non_blocking")
    if isinstance(source, DeviceTensor):
        GPU.synchronize(GPU.current)  # also where ``non_blocking`` is given: the target is pageable
        return source.memory.to(dtype, copy=True)
    made = DeviceTensor(torch.empty_like(source, dtype=dtype))
    _upload(made.memory, source, blocking)
    return made


def _upload(target: Tensor, source: Tensor, blocking: bool) -> None:
    """Copies to the device; pageable memory is read now, pinned memory when the copy runs."""
    if not source.numel():
        return
    pinned = GPU.holds(source.data_ptr())
    GPU.pageable_copies += not pinned
    taken = source if pinned else source.clone()
    GPU.launch(lambda: target.copy_(taken))
    if blocking:
        GPU.synchronize(GPU.current)


def _copy(target: Tensor, source: Tensor, non_blocking: bool) -> Tensor:
    """Implements ``copy_`` between the devices."""
    if isinstance(target, DeviceTensor):
        _upload(target.memory, source, not non_blocking)
        return target
    assert isinstance(source, DeviceTensor)
    memory = source.memory
    GPU.launch(lambda: target.copy_(memory))
    if not non_blocking or not GPU.holds(target.data_ptr()):
        GPU.synchronize(GPU.current)
    return target


def _stays(kwargs: Mapping[str, Any]) -> bool:
    return kwargs.get("device") is None or torch.device(kwargs["device"]).type == "cuda"


def _memory(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return value.memory if isinstance(value, DeviceTensor) else value


def _shape(value: Any) -> Any:
    if isinstance(value, DeviceTensor):
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


def _uninitialized(like: Tensor) -> Tensor:
    return torch.empty_strided(like.size(), like.stride(), dtype=like.dtype)
