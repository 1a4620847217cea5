/* memory.cpp: memory of the emulated device, and pinned memory: mappings of their own, whose last page ends where the
 * block does, with nothing before and behind. Freed ones are gone. So an access outside of a block is a fault. */
#include "block.h"
#include "device.h"
#include "trap.h"

#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>

using emulator::NOTHING;
using emulator::PAGE;
using emulator::untouched;

namespace
{

constexpr size_t ALIGNED = 16;                             // what no kernel asks more of
constexpr size_t POISONED = static_cast<size_t>(16) << 20; // of a block: NaN, so that nobody counts on zeros

size_t rounded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

std::mutex lock;
std::map<void *, size_t> &blocks()
{
    static auto *all = new std::map<void *, size_t>; // outlives everything that frees
    return *all;
}

char *pages_of(void *block, size_t n)
{
    return static_cast<char *>(block) + rounded(n, ALIGNED) - rounded(n, PAGE);
}

} // namespace

bool emulator::is_allocated(const void *from, size_t bytes)
{
    std::lock_guard<std::mutex> held(lock);
    auto behind = blocks().upper_bound(const_cast<void *>(from));
    if (behind == blocks().begin())
        return false;
    --behind;
    const size_t before = static_cast<size_t>(static_cast<const char *>(from) - static_cast<char *>(behind->first));
    return before <= behind->second && bytes <= behind->second - before;
}

extern "C" {

cudaError_t cudaMalloc(void **p, size_t n)
{
    *p = nullptr;
    const size_t room = rounded(n, PAGE);
    void *all = n > emulator::MEMORY
                    ? MAP_FAILED
                    : mmap(nullptr, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return emulator::told(cudaErrorMemoryAllocation);
    char *pages = static_cast<char *>(all) + PAGE, *block = pages + room - rounded(n, ALIGNED);
    if (room && mprotect(pages, room, PROT_READ | PROT_WRITE)) {
        munmap(all, room + 2 * PAGE);
        return emulator::told(cudaErrorMemoryAllocation);
    }
    memset(pages, NOTHING, room < POISONED ? room : POISONED);
    memset(block + n, NOTHING, rounded(n, ALIGNED) - n);
    std::lock_guard<std::mutex> held(lock);
    blocks()[ *p = block] = n;
    return cudaSuccess;
}
cudaError_t cudaFree(void *p)
{
    if (!p)
        return cudaSuccess;
    std::lock_guard<std::mutex> held(lock);
    const auto found = blocks().find(p);
    if (found == blocks().end())
        return emulator::told(cudaErrorInvalidValue);
    const size_t n = found->second;
    char *block = static_cast<char *>(p), *pages = pages_of(p, n);
    if (!untouched(pages, block) || !untouched(block + n, block + rounded(n, ALIGNED)))
        emulator::fail("a write just %s %zu bytes of memory that are freed now, by this kernel or one before",
                       untouched(pages, block) ? "behind" : "before", n);
    blocks().erase(found);
    munmap(pages - PAGE, rounded(n, PAGE) + 2 * PAGE);
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned)
{
    return cudaMalloc(p, n);
}
cudaError_t cudaFreeHost(void *p)
{
    return cudaFree(p);
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    *left = *total = emulator::MEMORY;
    return cudaSuccess;
}
}
