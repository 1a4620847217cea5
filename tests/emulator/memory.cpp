/* memory.cpp: memory of the emulated device, and pinned memory: mappings of their own, whose last page ends where the
 * block does, with nothing before and behind. Freed ones are gone, or closed until a block takes as many pages. So an
 * access outside of a block is a fault. */
#include "block.h"
#include "device.h"
#include "trap.h"

#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <vector>

using emulator::NOTHING;
using emulator::PAGE;
using emulator::untouched;

namespace
{

constexpr size_t ALIGNED = 16;                             // what no kernel asks more of
constexpr size_t POISONED = static_cast<size_t>(16) << 20; // of a block: NaN, so that nobody counts on zeros

/* Closing and opening the pages of a mapping is a third of the time of a new one, a tenth where there are many: each
 * page that is new is a fault, and zeroed. */
constexpr size_t KEPT_OF_ONE = static_cast<size_t>(1) << 20, KEPT_OF_ALL = static_cast<size_t>(64) << 20;

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

/* Closed pages of blocks that were freed, by how many bytes they are. */
std::map<size_t, std::vector<char *>> &closed()
{
    static auto *all = new std::map<size_t, std::vector<char *>>;
    return *all;
}
size_t kept; // bytes of them

char *pages_of(void *block, size_t n)
{
    return static_cast<char *>(block) + rounded(n, ALIGNED) - rounded(n, PAGE);
}

/* Of the pages around a block: the kernel would join a block that is closed with what lies around it, and part them again
 * when it is opened, which takes ten times as long as the opening itself. It leaves alone what is not to be dumped. */
void stay_apart(char *page)
{
    (void)madvise(page, PAGE, MADV_DONTDUMP);
}

/* `room` bytes of pages that may be written, with nothing before and behind; NULL: there are none. */
char *open_pages(size_t room)
{
    std::lock_guard<std::mutex> held(lock);
    std::vector<char *> &same = closed()[room];
    char *pages;
    if (same.empty()) {
        void *all = mmap(nullptr, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED)
            return nullptr;
        pages = static_cast<char *>(all) + PAGE;
        stay_apart(pages - PAGE);
        stay_apart(pages + room);
    } else {
        pages = same.back();
        same.pop_back();
        kept -= room;
    }
    if (!room || !mprotect(pages, room, PROT_READ | PROT_WRITE))
        return pages;
    munmap(pages - PAGE, room + 2 * PAGE);
    return nullptr;
}

/* With the lock held. */
void close_pages(char *pages, size_t room)
{
    if (room <= KEPT_OF_ONE && kept + room <= KEPT_OF_ALL && (!room || !mprotect(pages, room, PROT_NONE))) {
        closed()[room].push_back(pages);
        kept += room;
    } else {
        munmap(pages - PAGE, room + 2 * PAGE);
    }
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
    if (n > emulator::MEMORY)
        return emulator::told(cudaErrorMemoryAllocation);
    const size_t room = rounded(n, PAGE);
    char *pages = open_pages(room);
    if (!pages)
        return emulator::told(cudaErrorMemoryAllocation);
    char *block = pages + room - rounded(n, ALIGNED);
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
    close_pages(pages, rounded(n, PAGE));
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
