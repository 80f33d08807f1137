"""Compiles the kernels of the tables: by NVRTC for GPUs (none is needed), by g++ for the CPU."""

import ctypes
import hashlib
import importlib.util
import re
import shutil
import site
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
TORCH = Path(importlib.util.find_spec("torch").origin or "").parent  # pyright: ignore[reportOptionalMemberAccess]


@dataclass(frozen=True)
class Compiled:
    """Registers and bytes of spilled registers per kernel, as NVRTC and ptxas report them."""

    ptx: str
    registers: dict[str, int]
    spilled: dict[str, int]


def nvrtc_library() -> Path | None:
    """Returns the path of NVRTC in one of PyPI's CUDA wheels."""
    folders = [Path(folder) for folder in [*site.getsitepackages(), *sys.path]]
    found = [file for folder in folders for file in folder.glob("nvidia/*/lib/libnvrtc.so.*")]
    return max(found, default=None)


def compile_for(architecture: str, source: str) -> Compiled:
    """Compiles for one GPU, "sm_90" or the like; RuntimeError with the compiler's messages."""
    nvrtc, program = ctypes.CDLL(str(nvrtc_library())), ctypes.c_void_p()

    def text(name: str) -> str:
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{name}")(program, buffer)
        return buffer.value.decode()

    options = [f"--gpu-architecture={architecture}".encode(), b"--ptxas-options=-v"]
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    messages = text("ProgramLog")
    if failed:
        raise RuntimeError(messages)
    parts = re.findall(
        r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", messages, re.S
    )
    registers, spilled = ({name: int(found[at]) for name, *found in parts} for at in (1, 0))
    return Compiled(text("PTX"), registers, spilled)


def signatures(source: str) -> dict[str, list[str]]:
    """Returns the types of the parameters of each kernel."""
    found = re.findall(r"__global__\s+void\s+(?:__launch_bounds__\(.*?\)\s+)?(\w+)\(([^)]*)\)", source)
    return {name: [part.strip() for part in parameters.split(",")] for name, parameters in found}


def on_cpu(source: str) -> str:
    """Adds a launcher ``launch_NAME(blocks, threads, seed, arguments)`` for each kernel to the source."""
    takes = "unsigned blocks, unsigned threads, uint64_t seed, const uint64_t* arguments"
    launchers = (
        f'extern "C" void launch_{name}({takes}) {{ launch({name}, blocks, threads, seed, arguments); }}'
        for name in signatures(source)
    )
    return "\n".join([f'#include "{HERE / "cuda_on_cpu.hpp"}"', source, *launchers])


def build(source: str, *options: str) -> Path:
    """Compiles C++ by g++; a result for the same source and options is reused."""
    key = hashlib.sha256(
        repr((source, options, (HERE / "cuda_on_cpu.hpp").read_bytes())).encode()
    ).hexdigest()
    built = Path(tempfile.gettempdir()) / f"guidespace-device-{key[:24]}"
    if not built.exists():
        with tempfile.TemporaryDirectory() as folder:
            code, result = Path(folder) / "source.cpp", Path(folder) / "result"
            code.write_text(source, encoding="utf-8")
            subprocess.run(["g++", "-std=c++20", "-w", str(code), "-o", str(result), *options], check=True)
            shutil.copy(result, built.with_suffix(f".{id(folder)}"))
            built.with_suffix(f".{id(folder)}").replace(built)
    return built


@cache
def cpu_library(source: str) -> ctypes.CDLL:
    """Returns the compiled kernels with their launchers."""
    return ctypes.CDLL(str(build(on_cpu(source), "-O1", "-shared", "-fPIC")))


@cache
def register_device_type() -> None:
    """Makes "cuda" a device of the torch that is imported next; cannot be undone in a process."""
    libraries = f"-L{TORCH / 'lib'}", f"-Wl,-rpath,{TORCH / 'lib'}", "-ltorch_cpu", "-lc10"
    options = "-shared", "-fPIC", f"-I{TORCH / 'include'}", *libraries
    ctypes.CDLL(str(build((HERE / "guard.cpp").read_text(encoding="utf-8"), *options)))
