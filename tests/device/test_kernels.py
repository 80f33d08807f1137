"""Kernels of the tables, compiled for GPUs and run on the CPU."""

import re
import shutil
import subprocess

import pytest

from storage.tables.transfer import SOURCE
from tests.device.compilers import build, compile_for, nvrtc_library, on_cpu

NEEDS_GXX = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
MOST_REGISTERS = 64  # 1,024 threads of a multiprocessor's 65,536
PROGRAM = r"""
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <vector>

static int fail(const char* what) { return std::printf("%s\n", what), 1; }

int main() {
    const long long shapes[][3] = {{8, 7, 1}, {24, 33, 3}, {96, 5, 2}, {32, 4, 1}, {9, 50, 4}, {40, 0, 1}};
    for (auto [words, records, blocks] : shapes) {
        const long long rows = 2 * records + 1, places = 3 * records + 1;
        std::vector<uint4> host(rows * words), before, cache(places * words), held;
        std::vector<long long> ids(records), slots(records);
        for (long long at = 0; at < rows * words; at++) host[at] = {(unsigned)at, 1, 2, (unsigned)(at * 7)};
        for (long long at = 0; at < places * words; at++) cache[at] = {5, (unsigned)at, 6, 7};
        for (long long at = 0; at < records; at++) ids[at] = (at * 2 + 1) % rows, slots[at] = at * 3 + 2;
        before = host, held = cache;
        for (uint64_t seed = 0; seed < 5; seed++) {
            uint64_t arguments[] = {(uint64_t)host.data(), (uint64_t)ids.data(), (uint64_t)cache.data(),
                                    (uint64_t)slots.data(), (uint64_t)words, (uint64_t)records};
            launch_gather(blocks, 64, seed, arguments);
            for (long long at = 0; at < records; at++)
                std::memcpy(&held[slots[at] * words], &host[ids[at] * words], words * 16);
            if (std::memcmp(cache.data(), held.data(), cache.size() * sizeof(uint4))) return fail("gather");
            for (auto& word : cache) word.x += 1;
            held = cache;
            launch_scatter(blocks, 64, seed, arguments);
            for (long long at = 0; at < records; at++)
                std::memcpy(&before[ids[at] * words], &cache[slots[at] * words], words * 16);
            if (std::memcmp(host.data(), before.data(), host.size() * sizeof(uint4))) return fail("scatter");
        }
    }
    const long long words = 24, far = (3LL << 31) / 16 / words;  // a record that begins beyond 6 GB
    const size_t bytes = (far + 1) * words * 16;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (map == MAP_FAILED) return fail("mmap");
    std::vector<uint4> block(words, uint4{5, 6, 7, 8});
    std::vector<long long> ids{far}, slots{0};
    uint64_t arguments[] = {(uint64_t)map, (uint64_t)ids.data(), (uint64_t)block.data(),
                            (uint64_t)slots.data(), (uint64_t)words, 1};
    launch_scatter(1, 256, 1, arguments);
    if (((uint4*)map)[far * words + words - 1].w != 8) return fail("far scatter");
    std::swap(arguments[0], arguments[2]), std::swap(arguments[1], arguments[3]);  // and as a slot of a cache
    block.assign(words, uint4{9, 6, 7, 8});
    launch_gather(1, 256, 1, arguments);
    if (((uint4*)map)[far * words].x != 9) return fail("far slot");
    std::swap(arguments[0], arguments[2]), std::swap(arguments[1], arguments[3]);
    block.assign(words, uint4{});
    launch_gather(1, 256, 1, arguments);
    return block[words - 1].z == 7 ? 0 : fail("far gather");
}
"""


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_kernels_compile_with_wide_loads_and_no_spills(architecture: str, capsys: pytest.CaptureFixture):
    if nvrtc_library() is None:
        pytest.skip("NVRTC is not installed (nvidia-cuda-nvrtc)")
    compiled = compile_for(architecture, SOURCE)
    with capsys.disabled():
        print(f"\n{architecture}: registers {compiled.registers}")
    assert set(compiled.registers) == {"gather", "scatter"}
    assert max(compiled.registers.values()) <= MOST_REGISTERS and not any(compiled.spilled.values())
    for entry in compiled.ptx.split(".entry")[1:]:
        assert re.search(r"ld\.global\S*\.v4\.[bu]32", entry) and re.search(
            r"st\.global\S*\.v4\.[bu]32", entry
        )


@pytest.mark.slow
@NEEDS_GXX
def test_kernels_on_the_cpu_under_sanitizers():
    """Threads in shuffled order; buffers to the byte; one record beyond 2^31 bytes in a sparse map."""
    sanitizers = "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    program = build(on_cpu(SOURCE) + PROGRAM, *sanitizers)
    program.chmod(0o755)
    ran = subprocess.run([str(program)], capture_output=True, encoding="utf-8", timeout=120)
    assert not ran.returncode, ran.stdout + ran.stderr
