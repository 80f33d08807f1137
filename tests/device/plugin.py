"""A plugin of pytest: tests that are marked ``gpu`` run on the simulated device, once for each seed.

GUIDESPACE_SEEDS=20 python -m pytest -p tests.device.plugin -m gpu tests/storage/tables/test_gpu.py
"""

import ctypes
import importlib.machinery
import os
import sys
import threading
import zlib
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.device.compilers import cpu_library, register_device_type, signatures

register_device_type()  # torch looks for devices when it is imported

# ruff: noqa: E402
import torch

from tests.device import streams
from tests.device.streams import GPU, Event, Stream
from tests.device.tensors import Simulated

ALREADY_REGISTERED = 712
ROUNDS = int(os.environ.get("GUIDESPACE_ROUNDS", "1"))


class Runtime:
    """The part of the CUDA runtime that pins memory."""

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        """Registers memory; returns 0, or an error that the next launch reports again."""
        if GPU.holds(address):
            GPU.error = "part or all of the requested memory range is already mapped"
            return ALREADY_REGISTERED
        GPU.registered[address] = size
        return 0

    def cudaHostUnregister(self, address: int) -> int:
        """Unregisters memory, as in CUDA."""
        return 0 if GPU.registered.pop(address, None) else 713


class Kernel:
    """A kernel compiled for the CPU; its pointers must be of live or of registered memory."""

    def __init__(self, source: str, name: str) -> None:
        self.run, self.name = getattr(cpu_library(source), f"launch_{name}"), name
        self.pointers = ["*" in parameter for parameter in signatures(source)[name]]

    def __call__(self, blocks: tuple[int, ...], threads: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        values = np.array([int(value) for value in arguments], dtype=np.uint64)
        pointers = [int(value) for value, is_one in zip(values, self.pointers, strict=True) if is_one]
        held = [GPU.allocation_of(pointer) for pointer in pointers]  # kept until the kernel has run

        seed = ctypes.c_uint64(GPU.random.getrandbits(60))

        def check() -> None:
            for pointer, memory in zip(pointers, held, strict=True):
                known = memory is not None or not pointer or GPU.holds(pointer)
                assert known, f"{self.name}: address {pointer:#x} is of no allocation and not registered"

        def work() -> None:
            check()  # host memory may be unregistered by now
            self.run(blocks[0], threads[0], seed, values.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64)))

        check()
        GPU.launch(work)


class Block:
    """Context manager that does nothing."""

    def __init__(self, *about: Any) -> None:
        self.attributes = {"CanUseHostPointerForRegisteredMem": 1}

    def __enter__(self) -> "Block":
        return self

    def __exit__(self, *raised: object) -> None: ...


def cupy() -> ModuleType:
    """Stand-in for CuPy: raw modules run on torch's streams."""
    module: Any = ModuleType("cupy")
    module.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    module.RawModule = lambda code, **about: SimpleNamespace(get_function=lambda name: Kernel(code, name))
    module.cuda = SimpleNamespace(
        Stream=SimpleNamespace(from_external=lambda stream: stream),
        ExternalStream=lambda stream: stream,
        Device=Block,
    )
    return module


def install() -> None:
    """Puts the simulated device in the place of torch.cuda and CuPy, for the life of the process."""
    tensor, run = torch.tensor, threading.Thread.run

    def run_simulated(self: threading.Thread) -> None:
        with Simulated():
            run(self)

    def on_device(stream: Stream | None) -> Any:
        return stream or Block()

    replaced: dict[str, Any] = {
        "_lazy_init": lambda: None,
        "_sleep": streams.sleep,
        "Event": Event,
        "Stream": Stream,
        "cudart": Runtime,
        "current_device": lambda: 0,
        "current_stream": lambda device=None: GPU.current,
        "device_count": lambda: 1,
        "empty_cache": lambda: None,
        "is_available": lambda: True,
        "is_bf16_supported": lambda *about: True,
        "is_initialized": lambda: True,
        "mem_get_info": lambda device=None: (1 << 30, 1 << 31),
        "memory_allocated": lambda device=None: GPU.allocated,
        "get_device_properties": lambda device=None: SimpleNamespace(multi_processor_count=8),
        "stream": on_device,
        "synchronize": lambda device=None: GPU.synchronize(),
    }
    for name, value in replaced.items():
        setattr(torch.cuda, name, value)
    torch.tensor = lambda *values, device=None, **about: tensor(*values, **about).to(device or "cpu")
    threading.Thread.run = run_simulated
    sys.modules["cupy"] = cupy()


def pytest_configure(config: pytest.Config) -> None:
    install()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("device_round", range(ROUNDS), indirect=True)


@pytest.fixture(autouse=True)
def device_round(request: pytest.FixtureRequest) -> Iterator[None]:
    """A new device, and the dispatch of its tensors."""
    GPU.reset(zlib.crc32(request.node.name.encode()))
    with Simulated():
        yield
