/* device.h: what the emulated device is, and its last error. */
#ifndef PC_EMULATOR_DEVICE_H
#define PC_EMULATOR_DEVICE_H

#include <cuda_runtime.h>

namespace emulator
{

constexpr size_t MEMORY = static_cast<size_t>(8) << 30;

/* The error, which the thread's last one is from now on, unless it is none. */
cudaError_t told(cudaError_t error);

/* Whether [from, from + bytes) lies within one block of the device's memory. */
bool is_allocated(const void *from, size_t bytes);

} // namespace emulator

#endif
