// Registers device type CUDA in a torch that was built without it: one device, whose streams torch need not know of.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {
struct SimulatedGuard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
    c10::Device getDevice() const override { return c10::Device(c10::DeviceType::CUDA, 0); }
    c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
    void setDevice(c10::Device) const override {}
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
    c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(CUDA, SimulatedGuard)
}  // namespace

namespace at {
struct CUDAHooks final : CUDAHooksInterface {  // the name that torch looks up; a backward pass asks for them
    explicit CUDAHooks(CUDAHooksArgs) {}
    void init() const override {}
    bool hasCUDA() const override { return true; }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(DeviceIndex) const override { return true; }
    DeviceIndex deviceCount() const override { return 1; }
    DeviceIndex getCurrentDevice() const override { return 0; }
};
REGISTER_CUDA_HOOKS(CUDAHooks)
}  // namespace at
