// Registers device type CUDA in a torch that was built without it: one device, whose streams torch need not know of.
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
