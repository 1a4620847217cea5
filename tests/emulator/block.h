/* block.h: a block of threads on one thread of the CPU: each is a fiber, and the next one goes on where one has to
 * wait. */
#ifndef PC_EMULATOR_BLOCK_H
#define PC_EMULATOR_BLOCK_H

#include <cuda_runtime.h>

#include <functional>

namespace emulator
{

constexpr int LANES = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int MOST_THREADS = 1024;
constexpr size_t MOST_SHARED = 227 << 10; // of dynamic shared memory, as on the GPUs that this one says it is
size_t most_shared();                     // so much, or less where PARACORD_EMULATOR_SHARED says so

extern const char *kernel_name; // of the kernel that runs
extern char *dynamic_shared;    // where its dynamic shared memory begins

/* What a lane gives to its warp, and what it gets back, in the same bytes. */
struct slot {
    alignas(16) char bytes[64];
};

/* Something that lanes do together, as a shuffle: done once, when the last of them has come. */
using together = void (*)(slot *slots, unsigned lanes);

extern int current_thread;
extern slot slots[MOST_THREADS];

inline int thread_in_block()
{
    return current_thread;
}
inline slot &own_slot()
{
    return slots[current_thread];
}
void meet_warp(unsigned mask, together work);
void meet_block();
bool meet_block_any(bool mine);

/* `bytes` of shared memory, from what PTX calls their address: within the room of the launch, and aligned. */
char *shared_at(unsigned address, int bytes, const char *what);
unsigned shared_address(const void *place);

/* Copies that a thread has under way: they arrive when it waits for them, and not before. */
void forget_copies();

/* The thread goes no further. */
[[noreturn]] void leave_block();

/* One line about the kernel, the block and the thread; then the process ends. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All blocks of a launch, one after the other; blocks of other threads of the process wait. */
void run_grid(dim3 grid, dim3 block, size_t shared, const std::function<void()> &body);

} // namespace emulator

#endif
