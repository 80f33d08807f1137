"""Failures are logged once, lose no row, and leave the last checkpoint complete."""

import gc
import logging
import mmap
import os
import sys
import threading
import traceback
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from storage.tables import Host, Staged, choose_transfer, host, row_storage, write_safetensors
from storage.tables.row_storage import free_bytes
from tasks.optimizers import SGD, Adam

ROOT = Path(__file__).parents[3]
NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="reads this process' memory in /proc, which is Linux'"
)


class Breaking(Staged):
    """Storage that fails at its third read."""

    reads = 0

    def read(self, ids, cache, slots):
        self.reads += 1
        if self.reads == 3:
            raise OSError("the disk under the table is gone")
        return super().read(ids, cache, slots)


def test_a_transfer_that_fails_stops_the_run_with_its_traceback(world, tmp_path: Path):
    optimizer, file = Adam(), tmp_path / "table.safetensors"
    table = world.offloaded(optimizer, 12)
    world.drive(table, optimizer, world.schedule(5, seed=1))
    write_safetensors(file, table.sections(), {})
    before = load_file(file)
    table.storage.transfer = Breaking(table.storage.host, table.device)
    with pytest.raises(OSError, match="the disk under the table is gone") as caught:
        world.drive(table, optimizer, world.schedule(40, seed=2), first=5)
    assert "execute" in "".join(
        traceback.format_tb(caught.value.__traceback__)
    )  # where it happened, in the transfer's thread
    with pytest.raises(
        RuntimeError,
        match="a transfer failed, and rows are lost; build the table again and resume from a checkpoint",
    ):
        write_safetensors(file, table.sections(), {})
    with pytest.raises(RuntimeError, match="a transfer failed"):
        next(iter(table.prefetch([torch.tensor([1])], lambda ids: ids)))
    assert world.same(load_file(file), before)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("table ")]


def test_an_error_of_the_loader_is_raised_and_loses_no_row(world):
    optimizer = SGD()
    expected, table = world.resident(optimizer), world.offloaded(optimizer, 12)
    batches = world.schedule(10, seed=1)

    def failing():
        yield from batches
        raise ValueError("batch 10 cannot be read")

    with pytest.raises(ValueError, match="batch 10 cannot be read"):
        world.drive(table, optimizer, failing())
    world.drive(expected, optimizer, batches)
    assert world.same(world.tensors(table), world.tensors(expected))


def test_a_cache_that_does_not_fit_is_smaller_with_one_warning(world, monkeypatch, caplog):
    empty = torch.empty

    def scarce(*shape, **about):
        if len(shape) == 2 and shape[0] > 12 and "device" in about:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return empty(*shape, **about)

    monkeypatch.setattr(row_storage.torch, "empty", scarce)
    optimizer, batches = Adam(), world.schedule(30, seed=6)
    table = world.offloaded(optimizer, 48)
    monkeypatch.undo()
    assert table.storage.hot + table.storage.recent == 12
    assert [record.message for record in caplog.records] == [
        "cpu has no memory for a cache of 48 rows; the cache has 12, so more rows are moved"
    ]
    expected = world.resident(optimizer)
    world.drive(table, optimizer, batches)
    world.drive(expected, optimizer, batches)
    assert world.same(world.tensors(table), world.tensors(expected))


def test_failed_pinning_is_a_warning_and_memory_stays_pageable(monkeypatch, caplog):
    class Runtime:
        def cudaHostRegister(self, pointer, size, flags):
            return 2

    monkeypatch.setattr(host, "_runtime", Runtime)
    memory = Host(10, 128)
    with caplog.at_level(logging.WARNING):
        memory.pin()
    assert not memory.pinned and len(caplog.records) == 1
    assert caplog.records[0].message.startswith(
        "pinning 0.0 GB of host memory was refused (CUDA error 2): rows are moved through a small "
    )
    assert isinstance(choose_transfer("auto", memory, torch.device("cpu")), Staged)
    with pytest.raises(
        ValueError,
        match=r"transfer 'uva' needs a CUDA device.* and pinned memory; use 'auto' or 'staged'",
    ):
        choose_transfer("uva", memory, torch.device("cpu"))


NO_GPU = pytest.mark.skipif(
    torch.cuda.is_available(), reason="this machine has a CUDA device, which refuses no small buffer"
)


@NO_GPU
def test_a_buffer_that_cannot_be_pinned_is_pageable_with_one_warning(caplog):
    carrier = Staged(Host(10, 128), torch.device("cuda"))
    assert [buffer.shape for buffer in carrier._buffers] == [(10, 16), (10, 16)]
    (record,) = caplog.records
    assert record.message.startswith("pinning a buffer of 0 MB was refused (") and record.message.endswith(
        "rows are moved through pageable memory, which is slower"
    )


@NO_GPU
@pytest.mark.parametrize(
    "code",
    [
        "raise ImportError('libnvrtc.so.12: cannot open shared object file')",
        "class CompileException(Exception): ...\n"
        "def RawModule(code): raise CompileException('libnvrtc.so.12: cannot open shared object file')\n"
        "from types import SimpleNamespace\n"
        "cuda = SimpleNamespace(Device=lambda number: SimpleNamespace(attributes={}))",
    ],
    ids=["import", "compiler"],
)
def test_broken_cupy_is_a_warning_and_the_cpu_gathers(code: str, monkeypatch, tmp_path: Path, caplog):
    (tmp_path / "cupy.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    asked = []
    monkeypatch.setattr(host, "register", lambda data: asked.append(len(data)) or "")
    monkeypatch.setattr(host, "unregister", lambda pointer, device: None)
    memory, gpu = Host(10, 128), torch.device("cuda")
    assert isinstance(choose_transfer("staged", memory, gpu), Staged) and not asked
    caplog.clear()
    # pinning a hundred gigabytes takes a minute, and brings a CPU nothing
    assert isinstance(choose_transfer("auto", memory, gpu), Staged) and 10 not in asked
    assert (
        caplog.records[0].message
        == "CuPy is installed but does not work (libnvrtc.so.12: cannot open shared object file): "
        "rows are moved through a small buffer, which is slower"
    )
    with pytest.raises(Exception, match="libnvrtc"):
        choose_transfer("uva", memory, gpu)


def is_mapped(pointer: int) -> bool:
    """Returns whether this process has mapped an address."""
    bounds = [
        line.split()[0].split("-")
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    ]
    return any(int(first, 16) <= pointer < int(last, 16) for first, last in bounds)


@NEEDS_PROC
def test_pinned_memory_is_registered_by_the_byte_and_released(monkeypatch):
    calls = []

    class Runtime:
        def cudaHostRegister(self, pointer, size, flags):
            calls.append(("register", pointer, size))
            return 0

        def cudaHostUnregister(self, pointer):
            calls.append(
                ("unregister", pointer if is_mapped(pointer) else None)
            )  # unmapped first, it might be another table's by now

    monkeypatch.setattr(host, "_runtime", Runtime)
    memory = Host(1001, 384)
    memory.pin()
    assert memory.pinned and memory.data.data_ptr() % 128 == 0
    pointer = memory.data.data_ptr()
    del memory
    gc.collect()
    assert calls == [("register", pointer, 1001 * 384), ("unregister", pointer)]  # no power of two
    assert not is_mapped(pointer)


@NEEDS_PROC
def test_a_forked_process_has_no_pinned_pages(monkeypatch):
    """Copied on writing they would be the child's or the parent's, and the GPU's no longer."""
    monkeypatch.setattr(host, "register", lambda data: "")
    monkeypatch.setattr(host, "unregister", lambda pointer, device: None)
    memory = Host(100_000, 128)
    for pinned in (False, True):
        maps = Path("/proc/self/smaps").read_text(encoding="utf-8").split("VmFlags:")
        about = next(flags for part, flags in pairwise(maps) if f"{memory.data.data_ptr():x}-" in part)
        assert ("dc" in about.splitlines()[0].split()) == pinned  # "do not copy area on fork"
        memory.pin()


def test_a_host_without_records_has_nothing_to_pin():
    """A table that is cached whole: the GPU may reach all that is there, so UVA is not refused for it."""
    memory = Host(0, 128)
    memory.pin()
    assert memory.pinned


def test_a_full_disk_is_an_error_before_a_row_is_written(tmp_path: Path):
    """A page of a sparse file for which the disk has no block ends the process by SIGBUS."""
    disk = os.statvfs(tmp_path)
    with pytest.raises(
        OSError,
        match=r"the rows of a table outside its cache take [\d,]+ bytes, but [\d,]+ are free; choose",
    ):
        Host(2 * disk.f_blocks * disk.f_frsize // 4096, 4096, tmp_path)
    Host(100, 4096, tmp_path).data.fill_(1)
    held = Host(1000, 4096, tmp_path)
    assert held._file is not None and os.fstat(held._file.fileno()).st_blocks * 512 >= 1000 * 4096


def test_tables_work_without_system_calls_of_linux(world, monkeypatch, tmp_path: Path):
    """macOS has no huge pages to ask for, reserves no room, drops no pages and does not say how much memory
    is free."""
    expected = world.resident(Adam())
    world.drive(expected, Adam(), world.schedule(5, seed=1))
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE")
    for name in ("posix_fallocate", "posix_fadvise"):
        monkeypatch.delattr(os, name)
    monkeypatch.delitem(os.sysconf_names, "SC_AVPHYS_PAGES")
    for folder in (None, tmp_path):
        table = world.offloaded(Adam(), folder=folder)
        world.drive(table, Adam(), world.schedule(5, seed=1))
        table.storage.host.drop_pages()
        assert world.same(world.tensors(table), world.tensors(expected))
    assert free_bytes(torch.device("cpu")) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@NEEDS_PROC
def test_a_hundred_tables_release_memory_threads_and_files(world, tmp_path: Path):
    """Memory, threads and open files after a hundred tables of 1.5 MB each, half of them in files."""

    def use(number: int) -> None:
        table = world.offloaded(Adam(), 300, tokens=1000, folder=tmp_path if number % 2 else None)
        world.drive(table, Adam(), [torch.arange(number, 1000, 7), torch.arange(500)])

    for number in range(10):
        use(number)
    gc.collect()
    memory, threads, files = resident_bytes(), threading.active_count(), len(os.listdir("/proc/self/fd"))
    for number in range(100):
        use(number)
    gc.collect()
    assert threading.active_count() <= threads and len(os.listdir("/proc/self/fd")) <= files
    assert resident_bytes() - memory < 8 << 20
