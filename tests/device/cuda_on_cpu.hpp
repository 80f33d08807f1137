// Lets g++ compile CUDA kernels that use no warp intrinsics: threads run one after another, in shuffled order.
#pragma once
#include <cstdint>
#include <random>
#include <utility>

#define __global__
#define __launch_bounds__(...)
#define __restrict__ __restrict
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct Index { unsigned x, y, z; };
static thread_local Index blockIdx, threadIdx, blockDim, gridDim;

template <class... Parameters, std::size_t... Places>
void run_thread(void (*kernel)(Parameters...), const uint64_t* arguments, std::index_sequence<Places...>) {
    kernel((Parameters)arguments[Places]...);
}

template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, uint64_t seed, const uint64_t* arguments) {
    const uint64_t total = (uint64_t)blocks * threads;
    std::mt19937_64 random(seed);
    uint64_t stride = random() % total | 1, at = random() % total;  // made coprime: every thread has its turn once
    for (uint64_t a = stride, b = total; ; a = stride, b = total) {
        while (b) a = std::exchange(b, a % b);
        if (a == 1) break;
        stride += 2;
    }
    gridDim = {blocks, 1, 1}, blockDim = {threads, 1, 1};
    for (uint64_t turn = 0; turn < total; turn++, at = (at + stride) % total) {
        blockIdx = {(unsigned)(at / threads), 0, 0}, threadIdx = {(unsigned)(at % threads), 0, 0};
        run_thread(kernel, arguments, std::index_sequence_for<Parameters...>());
    }
}
